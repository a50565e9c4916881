COPY city FROM 'gzip/city.csv' (FORMAT 'csv', allow_quoted_nulls false, force_not_null ('region', 'name'), header 1, nullstr 'NIL', delimiter '|', quote '"', compression 'gzip');
COPY past.sale FROM 'gzip/past_sale.csv' (FORMAT 'csv', allow_quoted_nulls false, header 1, nullstr 'NIL', delimiter '|', quote '"', compression 'gzip');
COPY sale FROM 'gzip/sale.csv' (FORMAT 'csv', allow_quoted_nulls false, force_not_null 'id', header 1, nullstr 'NIL', delimiter '|', quote '"', compression 'gzip');
