//! Regression tests of wrong results.

use crate::support::*;

#[test]
fn grouping_by_the_same_expression_twice() {
    let sql = "select a as x, a as y, sum(b) as z from (values (1, 2), (1, 3), (2, 5)) v(a, b) group by 1, 2 order by 1";
    assert_eq!(csv(tpch(), sql).ok(), "x,y,z\n1,1,5\n2,2,5\n");
}

#[test]
fn one_field_equal_to_two_of_another_table() {
    let sql = "select * from (values (1), (2)) a(x), (values (1, 1), (1, 2), (2, 2)) b(y, z) \
               where x = y and x = z order by 1";
    assert_eq!(csv(tpch(), sql).ok(), "x,y,z\n1,1,1\n2,2,2\n");
}

#[test]
fn branches_that_are_constant_by_chance() {
    let sql = "select cast(case when a.x > 0 then b.y else a.x end as double) as z \
               from (values (1), (2)) a(x) left join (values (7)) b(y) on a.x = b.y";
    assert_eq!(csv(tpch(), sql).ok(), "z\n\n\n");
}
