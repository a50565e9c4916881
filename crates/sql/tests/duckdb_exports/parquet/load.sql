COPY city FROM 'parquet/city.parquet' (FORMAT 'parquet');
COPY past.sale FROM 'parquet/past_sale.parquet' (FORMAT 'parquet');
COPY sale FROM 'parquet/sale.parquet' (FORMAT 'parquet');
