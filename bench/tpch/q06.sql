select sum(l_extendedprice*l_discount) revenue
from lineitem
where l_shipdate >= date '{first}'
  and l_shipdate < date '{end}'
  and l_discount between {low} and {high}
  and l_quantity < {quantity}
