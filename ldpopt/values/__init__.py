"""Values that every layer takes and returns: labels, distributions, records, results, deadlines, random generators."""
