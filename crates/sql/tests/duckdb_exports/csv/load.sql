COPY city FROM 'csv/city.csv' (FORMAT 'csv', allow_quoted_nulls false, force_not_null ('region', 'name'), quote '"', delimiter ',', header 1);
COPY past.sale FROM 'csv/past_sale.csv' (FORMAT 'csv', allow_quoted_nulls false, quote '"', delimiter ',', header 1);
COPY sale FROM 'csv/sale.csv' (FORMAT 'csv', allow_quoted_nulls false, force_not_null 'id', quote '"', delimiter ',', header 1);
