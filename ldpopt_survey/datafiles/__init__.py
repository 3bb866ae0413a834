"""Files of answers as people have them: delimited text, Excel, Parquet, SPSS, Stata, SAS.

Delimited text may have any delimiter, encoding and decimal mark.
"""
