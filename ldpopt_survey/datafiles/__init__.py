"""Files of answers as people have them: delimited text in any writing, Excel, Parquet, SPSS, Stata and SAS."""
