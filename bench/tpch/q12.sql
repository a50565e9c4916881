select l_shipmode, sum(case when o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH' then 1 else 0 end) high, sum(case when o_orderpriority <> '1-URGENT'
    and o_orderpriority <> '2-HIGH' then 1 else 0 end) low
from orders, lineitem
where o_orderkey = l_orderkey
  and l_shipmode in ('{one}', '{other}')
  and l_commitdate < l_receiptdate
  and l_shipdate < l_commitdate
  and l_receiptdate >= date '{first}'
  and l_receiptdate < date '{end}'
group by l_shipmode
order by l_shipmode
