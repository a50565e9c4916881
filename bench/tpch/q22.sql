select cntrycode, count(*) numcust, sum(c_acctbal) totacctbal
from (select substring(c_phone from 1 for 2) cntrycode, c_acctbal from customer
  where substring(c_phone from 1 for 2) in ({codes})
    and c_acctbal > (select avg(c_acctbal)
    from customer
    where c_acctbal > 0.00
      and substring(c_phone from 1 for 2) in ({codes}))
    and not exists (select *
    from orders
    where o_custkey = c_custkey)) custsale
group by cntrycode
order by cntrycode
