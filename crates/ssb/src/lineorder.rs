//! The fact table. The unit of generation is an order: its lines share customer, date, priority and total price.

use crate::calendar::Day;
use crate::part::retail_price;
use crate::random::Stream;
use crate::scale::Scale;
use crate::table::SsbTable;
use crate::words::{PRIORITIES, SHIP_MODES};
use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use std::sync::Arc;

/// Orders are placed from 1992-01-01 to 1998-08-02, so that the last commit date is still in 1998.
const ORDER_DAYS: u64 = 2_406;
/// Days from the order to the date promised for it.
const COMMIT_DAYS: (i32, i32) = (30, 90);
const MAX_LINES: u64 = 7;
/// Every third customer has never ordered anything.
const IDLE_CUSTOMERS: u64 = 3;

/// Where a run of fact rows begins: a line of an order, both counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) order: u64,
    pub(crate) line: usize,
}

/// Everything needed to compute any order.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    customers: u64,
    suppliers: u64,
    parts: u64,
    /// Date keys by days since 1992-01-01.
    date_keys: Arc<[i32]>,
    lines: Stream,
    customer: Stream,
    date: Stream,
    priority: Stream,
    part: Stream,
    supplier: Stream,
    quantity: Stream,
    discount: Stream,
    tax: Stream,
    commit: Stream,
    ship_mode: Stream,
}

struct Order {
    customer: i32,
    day: i32,
    priority: &'static str,
    total_price: i32,
    lines: usize,
    line: [OrderLine; MAX_LINES as usize],
}

#[derive(Clone, Copy, Default)]
struct OrderLine {
    part: i32,
    quantity: i32,
    discount: i32,
    tax: i32,
    extended_price: i32,
    revenue: i32,
    supply_cost: i32,
}

impl Orders {
    pub(crate) fn new(seed: u64, scale: Scale) -> Self {
        let stream = |column| Stream::new(seed, SsbTable::Lineorder, column);
        let days = ORDER_DAYS as i32 + COMMIT_DAYS.1;
        Self {
            customers: scale.customers(),
            suppliers: scale.suppliers(),
            parts: scale.parts(),
            date_keys: (0..days).map(|offset| Day::at(offset).key()).collect(),
            lines: stream(0),
            customer: stream(1),
            date: stream(2),
            priority: stream(3),
            part: stream(4),
            supplier: stream(5),
            quantity: stream(6),
            discount: stream(7),
            tax: stream(8),
            commit: stream(9),
            ship_mode: stream(10),
        }
    }

    /// Fact rows of some orders; one cheap hash per order.
    pub(crate) fn count_lines(&self, orders: std::ops::Range<u64>) -> u64 {
        orders.map(|order| self.lines_of(order) as u64).sum()
    }

    /// At most `rows` rows from `begin` on, of orders before `end`; and where the next batch begins.
    pub(crate) fn batch(&self, begin: Position, end: u64, rows: usize) -> (RecordBatch, Position) {
        let mut columns = OrderColumns::with_capacity(rows);
        let mut at = begin;
        let mut room = rows;
        while room > 0 && at.order < end {
            let order = self.order(at.order);
            let last = order.lines.min(at.line + room);
            for line in at.line..last {
                columns.push(self, at.order, line, &order);
            }
            room -= last - at.line;
            at = if last == order.lines {
                Position {
                    order: at.order + 1,
                    line: 0,
                }
            } else {
                Position {
                    order: at.order,
                    line: last,
                }
            };
        }
        (columns.finish(), at)
    }

    fn lines_of(&self, order: u64) -> usize {
        1 + self.lines.below(order, MAX_LINES) as usize
    }

    fn order(&self, order: u64) -> Order {
        let mut total_price = 0;
        let mut line = [OrderLine::default(); MAX_LINES as usize];
        let lines = self.lines_of(order);
        for (at, line) in line[..lines].iter_mut().enumerate() {
            *line = self.line(line_row(order, at));
            total_price += line.revenue * (100 + line.tax) / 100;
        }
        Order {
            customer: self.customer_of(order),
            day: self.date.below(order, ORDER_DAYS) as i32,
            priority: self.priority.pick(order, &PRIORITIES),
            total_price,
            lines,
            line,
        }
    }

    /// In cents all products fit 32 bits: a part costs at most 2,099.00 and a line has at most 50 of it, so that even
    /// 108 times a line's price stays below 2³¹.
    fn line(&self, row: u64) -> OrderLine {
        let part = 1 + self.part.below(row, self.parts) as i32;
        let price = retail_price(part);
        let quantity = self.quantity.between(row, 1, 50);
        let discount = self.discount.between(row, 0, 10);
        let extended_price = price * quantity;
        OrderLine {
            part,
            quantity,
            discount,
            tax: self.tax.between(row, 0, 8),
            extended_price,
            revenue: extended_price * (100 - discount) / 100,
            supply_cost: 6 * price / 10,
        }
    }

    fn customer_of(&self, order: u64) -> i32 {
        let key = 1 + self.customer.below(order, self.customers);
        let key = match key {
            key if key % IDLE_CUSTOMERS != 0 => key,
            key if key < self.customers => key + 1,
            key => key - 1,
        };
        key as i32
    }
}

/// Keys are sparse: eight used of every 32, the gaps being for orders that come and go (TPC-H, clause 4.2.3).
fn order_key(order: u64) -> i64 {
    let number = order + 1;
    ((number >> 3 << 5) | (number & 7)) as i64
}

/// Position of a line in the random streams: room for eight lines per order.
fn line_row(order: u64, line: usize) -> u64 {
    order * 8 + line as u64
}

/// The columns under construction, in the order of the schema.
struct OrderColumns {
    order_key: Vec<i64>,
    line_number: Vec<i32>,
    customer: Vec<i32>,
    part: Vec<i32>,
    supplier: Vec<i32>,
    order_date: Vec<i32>,
    order_priority: StringBuilder,
    ship_priority: StringBuilder,
    quantity: Vec<i32>,
    extended_price: Vec<i32>,
    total_price: Vec<i32>,
    discount: Vec<i32>,
    revenue: Vec<i32>,
    supply_cost: Vec<i32>,
    tax: Vec<i32>,
    commit_date: Vec<i32>,
    ship_mode: StringBuilder,
}

impl OrderColumns {
    fn with_capacity(rows: usize) -> Self {
        let numbers = || Vec::with_capacity(rows);
        let text = |bytes| StringBuilder::with_capacity(rows, rows * bytes);
        Self {
            order_key: Vec::with_capacity(rows),
            line_number: numbers(),
            customer: numbers(),
            part: numbers(),
            supplier: numbers(),
            order_date: numbers(),
            order_priority: text(10),
            ship_priority: text(1),
            quantity: numbers(),
            extended_price: numbers(),
            total_price: numbers(),
            discount: numbers(),
            revenue: numbers(),
            supply_cost: numbers(),
            tax: numbers(),
            commit_date: numbers(),
            ship_mode: text(5),
        }
    }

    fn push(&mut self, orders: &Orders, number: u64, at: usize, order: &Order) {
        let row = line_row(number, at);
        let line = order.line[at];
        let commit_day = order.day + orders.commit.between(row, COMMIT_DAYS.0, COMMIT_DAYS.1);
        self.order_key.push(order_key(number));
        self.line_number.push(at as i32 + 1);
        self.customer.push(order.customer);
        self.part.push(line.part);
        self.supplier
            .push(1 + orders.supplier.below(row, orders.suppliers) as i32);
        self.order_date.push(orders.date_keys[order.day as usize]);
        self.order_priority.append_value(order.priority);
        self.ship_priority.append_value("0");
        self.quantity.push(line.quantity);
        self.extended_price.push(line.extended_price);
        self.total_price.push(order.total_price);
        self.discount.push(line.discount);
        self.revenue.push(line.revenue);
        self.supply_cost.push(line.supply_cost);
        self.tax.push(line.tax);
        self.commit_date.push(orders.date_keys[commit_day as usize]);
        self.ship_mode
            .append_value(orders.ship_mode.pick(row, &SHIP_MODES));
    }

    fn finish(mut self) -> RecordBatch {
        let numbers = |values: Vec<i32>| -> ArrayRef { Arc::new(Int32Array::from(values)) };
        let columns = vec![
            Arc::new(Int64Array::from(self.order_key)) as ArrayRef,
            numbers(self.line_number),
            numbers(self.customer),
            numbers(self.part),
            numbers(self.supplier),
            numbers(self.order_date),
            Arc::new(self.order_priority.finish()),
            Arc::new(self.ship_priority.finish()),
            numbers(self.quantity),
            numbers(self.extended_price),
            numbers(self.total_price),
            numbers(self.discount),
            numbers(self.revenue),
            numbers(self.supply_cost),
            numbers(self.tax),
            numbers(self.commit_date),
            Arc::new(self.ship_mode.finish()),
        ];
        RecordBatch::try_new(SsbTable::Lineorder.schema(), columns)
            .expect("columns are built to the schema")
    }
}
