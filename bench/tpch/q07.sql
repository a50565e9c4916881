select supp_nation, cust_nation, l_year, sum(volume) revenue
from (select n1.n_name supp_nation, n2.n_name cust_nation, extract(year from l_shipdate) l_year, l_extendedprice*(1-l_discount) volume
  from supplier, lineitem, orders, customer, nation n1, nation n2
  where s_suppkey = l_suppkey
    and o_orderkey = l_orderkey
    and c_custkey = o_custkey
    and s_nationkey = n1.n_nationkey
    and c_nationkey = n2.n_nationkey
    and ((n1.n_name = '{one}'
        and n2.n_name = '{other}') or (n1.n_name = '{other}'
        and n2.n_name = '{one}'))
    and l_shipdate between date '1995-01-01' and date '1996-12-31') shipping
group by supp_nation, cust_nation, l_year
order by supp_nation, cust_nation, l_year
