select s_name, s_address
from supplier, nation
where s_suppkey in (select ps_suppkey
  from partsupp
  where ps_partkey in (select p_partkey
    from part
    where p_name like '{colour}%')
    and ps_availqty > (select 0.5*sum(l_quantity)
    from lineitem
    where l_partkey = ps_partkey
      and l_suppkey = ps_suppkey
      and l_shipdate >= date '{first}'
      and l_shipdate < date '{end}'))
  and s_nationkey = n_nationkey
  and n_name = '{nation}'
order by s_name
