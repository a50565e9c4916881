//! How a value is shown in a text: `%05d`, `{:>8.2f}`.

/// What is wrong with a text, or with a value for it.
type Result<T> = std::result::Result<T, String>;

/// A part of a text.
#[derive(Debug)]
pub(super) enum Piece {
    Text(String),
    /// The number of the value, and how it is shown.
    Value(usize, Spec),
}

/// A value to be shown.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shown<'a> {
    Integer(i64),
    Float(f64),
    String(&'a str),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Align {
    Left,
    Right,
    Center,
}

/// How a value is shown.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    fill: char,
    /// As the kind of value has it, if nothing is written.
    align: Option<Align>,
    /// What stands before a number that is not negative.
    sign: &'static str,
    has_prefix: bool,
    has_zeros: bool,
    has_commas: bool,
    width: usize,
    precision: Option<usize>,
    /// The letter of the type; none for what the value has by itself.
    kind: Option<char>,
}

impl Spec {
    fn plain() -> Self {
        Spec {
            fill: ' ',
            align: None,
            sign: "",
            has_prefix: false,
            has_zeros: false,
            has_commas: false,
            width: 0,
            precision: None,
            kind: None,
        }
    }

    /// Appends a value to a text.
    pub fn show(&self, value: Shown<'_>, out: &mut String) -> Result<()> {
        let kind = self.kind.unwrap_or(match value {
            Shown::Integer(_) => 'd',
            Shown::Float(_) if self.precision.is_some() => 'g',
            Shown::Float(_) => 'r',
            Shown::String(_) => 's',
        });
        let (sign, digits) = match (kind, value) {
            ('d' | 'i' | 'u', Shown::Integer(value)) => {
                (value < 0, value.unsigned_abs().to_string())
            }
            ('d' | 'i' | 'u', Shown::Float(value)) => {
                (value < 0.0, format!("{:.0}", value.trunc().abs()))
            }
            ('x', Shown::Integer(value)) => (value < 0, format!("{:x}", value.unsigned_abs())),
            ('X', Shown::Integer(value)) => (value < 0, format!("{:X}", value.unsigned_abs())),
            ('o', Shown::Integer(value)) => (value < 0, format!("{:o}", value.unsigned_abs())),
            ('b', Shown::Integer(value)) => (value < 0, format!("{:b}", value.unsigned_abs())),
            ('c', Shown::Integer(value)) => {
                let c = u32::try_from(value).ok().and_then(char::from_u32);
                return match c {
                    Some(c) => {
                        self.pad(&c.to_string(), Align::Left, out);
                        Ok(())
                    }
                    None => Err(format!("{value} is no character")),
                };
            }
            ('f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'r', Shown::Integer(value)) => {
                return self.number(value as f64, kind, out);
            }
            ('f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'r', Shown::Float(value)) => {
                return self.number(value, kind, out);
            }
            ('s', Shown::String(text)) => {
                let text: String = match self.precision {
                    Some(most) => text.chars().take(most).collect(),
                    None => text.to_owned(),
                };
                self.pad(&text, Align::Left, out);
                return Ok(());
            }
            ('s', Shown::Integer(value)) => (value < 0, value.unsigned_abs().to_string()),
            ('s', Shown::Float(value)) => return self.number(value, 'r', out),
            (kind, _) => return Err(format!("a value cannot be shown as {kind}")),
        };
        let prefix = match kind {
            'x' if self.has_prefix => "0x",
            'X' if self.has_prefix => "0X",
            'b' if self.has_prefix => "0b",
            'o' if self.has_prefix => "0",
            _ => "",
        };
        let least = self.precision.unwrap_or(0);
        let digits = format!("{digits:0>least$}");
        self.signed(sign, prefix, &digits, out);
        Ok(())
    }

    fn number(&self, value: f64, kind: char, out: &mut String) -> Result<()> {
        let size = value.abs();
        let digits = if !value.is_finite() {
            if value.is_nan() { "nan" } else { "inf" }.to_owned()
        } else {
            let precision = self.precision.unwrap_or(6);
            match kind {
                'r' => format!("{size:?}"),
                'f' | 'F' => format!("{size:.precision$}"),
                'e' | 'E' => exponent(&format!("{size:.precision$e}")),
                _ => general(size, precision.max(1), self.has_prefix),
            }
        };
        let digits = match kind.is_ascii_uppercase() {
            true => digits.to_uppercase(),
            false => digits,
        };
        self.signed(
            value.is_sign_negative() && !value.is_nan(),
            "",
            &digits,
            out,
        );
        Ok(())
    }

    fn signed(&self, is_negative: bool, prefix: &str, digits: &str, out: &mut String) {
        let sign = if is_negative { "-" } else { self.sign };
        let digits = match self.has_commas {
            true => with_commas(digits),
            false => digits.to_owned(),
        };
        let is_number = digits.starts_with(|c: char| c.is_ascii_hexdigit());
        if self.has_zeros && self.align.is_none() && is_number {
            let rest = self.width.saturating_sub(sign.len() + prefix.len());
            out.push_str(&format!("{sign}{prefix}{digits:0>rest$}"));
        } else {
            self.pad(&format!("{sign}{prefix}{digits}"), Align::Right, out);
        }
    }

    fn pad(&self, text: &str, usual: Align, out: &mut String) {
        let missing = self.width.saturating_sub(text.chars().count());
        let before = match self.align.unwrap_or(usual) {
            Align::Left => 0,
            Align::Right => missing,
            Align::Center => missing / 2,
        };
        out.extend(std::iter::repeat_n(self.fill, before));
        out.push_str(text);
        out.extend(std::iter::repeat_n(self.fill, missing - before));
    }
}

/// `1.5e0` as C has it: `1.5e+00`.
fn exponent(text: &str) -> String {
    let Some((digits, exponent)) = text.split_once('e') else {
        return text.to_owned();
    };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

/// C's `%g`: so many digits, with an exponent where that is shorter.
fn general(size: f64, precision: usize, keeps_zeros: bool) -> String {
    let scientific = format!("{size:.*e}", precision - 1);
    let power: i32 = scientific
        .split_once('e')
        .and_then(|(_, power)| power.parse().ok())
        .unwrap_or(0);
    let trimmed = |digits: &str| match digits.contains('.') && !keeps_zeros {
        true => digits
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned(),
        false => digits.to_owned(),
    };
    if power < -4 || power >= precision as i32 {
        let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        return exponent(&format!("{}e{power}", trimmed(digits)));
    }
    let decimals = (precision as i32 - 1 - power).max(0) as usize;
    trimmed(&format!("{size:.decimals$}"))
}

fn with_commas(digits: &str) -> String {
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    let (whole, rest) = digits.split_at(end);
    let mut out = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

/// The pieces of a text of C's printf.
pub(super) fn of_printf(text: &str) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut chars = text.chars().peekable();
    let mut next_value = 0;
    while let Some(c) = chars.next() {
        if c != '%' {
            plain.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            plain.push('%');
            continue;
        }
        let mut spec = Spec::plain();
        while let Some(flag) = chars.next_if(|c| "-+ #0,'".contains(*c)) {
            match flag {
                '-' => spec.align = Some(Align::Left),
                '+' => spec.sign = "+",
                ' ' if spec.sign.is_empty() => spec.sign = " ",
                '#' => spec.has_prefix = true,
                '0' => spec.has_zeros = true,
                ',' | '\'' => spec.has_commas = true,
                _ => {}
            }
        }
        spec.width = number(&mut chars)?.unwrap_or(0);
        if chars.next_if_eq(&'.').is_some() {
            spec.precision = Some(number(&mut chars)?.unwrap_or(0));
        }
        while chars.next_if(|c| "hlLqjzt".contains(*c)).is_some() {}
        match chars.next() {
            Some(kind) if "diuxXocsfFeEgG".contains(kind) => spec.kind = Some(kind),
            Some(kind) => return Err(format!("there is no %{kind}")),
            None => return Err(format!("'{text}' ends within a %")),
        }
        pieces.push(Piece::Text(std::mem::take(&mut plain)));
        pieces.push(Piece::Value(next_value, spec));
        next_value += 1;
    }
    pieces.push(Piece::Text(plain));
    Ok(pieces)
}

/// The pieces of a text of the library fmt.
pub(super) fn of_format(text: &str) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut chars = text.chars().peekable();
    let mut next_value = 0;
    while let Some(c) = chars.next() {
        match c {
            '{' if chars.next_if_eq(&'{').is_some() => plain.push('{'),
            '}' if chars.next_if_eq(&'}').is_some() => plain.push('}'),
            '}' => return Err(format!("'{text}' has a }} without a {{")),
            '{' => {
                let place = match number(&mut chars)? {
                    Some(place) => place,
                    None => {
                        next_value += 1;
                        next_value - 1
                    }
                };
                let spec = match chars.next_if_eq(&':') {
                    Some(_) => format_spec(&mut chars)?,
                    None => Spec::plain(),
                };
                if chars.next() != Some('}') {
                    return Err(format!("'{text}' has a {{ that does not end as it should"));
                }
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Value(place, spec));
            }
            c => plain.push(c),
        }
    }
    pieces.push(Piece::Text(plain));
    Ok(pieces)
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn format_spec(chars: &mut Chars<'_>) -> Result<Spec> {
    let mut spec = Spec::plain();
    let align = |c: char| match c {
        '<' => Some(Align::Left),
        '>' => Some(Align::Right),
        '^' => Some(Align::Center),
        _ => None,
    };
    let mut ahead = chars.clone();
    let (first, second) = (ahead.next(), ahead.next());
    if let (Some(fill), Some(Some(written))) = (first, second.map(align)) {
        (spec.fill, spec.align) = (fill, Some(written));
        chars.nth(1);
    } else if let Some(Some(written)) = first.map(align) {
        spec.align = Some(written);
        chars.next();
    }
    match chars.next_if(|c| "+- ".contains(*c)) {
        Some('+') => spec.sign = "+",
        Some(' ') => spec.sign = " ",
        _ => {}
    }
    spec.has_prefix = chars.next_if_eq(&'#').is_some();
    spec.has_zeros = chars.next_if_eq(&'0').is_some();
    spec.width = number(chars)?.unwrap_or(0);
    spec.has_commas = chars.next_if_eq(&',').is_some();
    if chars.next_if_eq(&'.').is_some() {
        spec.precision = number(chars)?;
    }
    spec.kind = chars.next_if(|c| "dxXobcsfFeEgG".contains(*c));
    Ok(spec)
}

/// Widths are no longer than texts.
const WIDEST: usize = 10_000;

fn number(chars: &mut Chars<'_>) -> Result<Option<usize>> {
    let mut number = None;
    while let Some(digit) = chars.next_if(char::is_ascii_digit) {
        let more = 10 * number.unwrap_or(0) + digit as usize - '0' as usize;
        if more > WIDEST {
            return Err(format!("a width or number is above {WIDEST}"));
        }
        number = Some(more);
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: Result<Vec<Piece>>, values: &[Shown<'_>]) -> String {
        let mut out = String::new();
        for piece in pieces.unwrap() {
            match piece {
                Piece::Text(text) => out.push_str(&text),
                Piece::Value(place, spec) => spec.show(values[place], &mut out).unwrap(),
            }
        }
        out
    }

    #[test]
    fn printf_is_that_of_c() {
        use Shown::{Float, Integer, String};
        for (text, value, expected) in [
            ("%05d|", Integer(42), "00042|"),
            ("%-5s|", String("ab"), "ab   |"),
            ("%5.1f|", Float(2.25), "  2.2|"),
            ("%x %%", Integer(255), "ff %"),
            ("%+d", Integer(5), "+5"),
            ("%e", Float(12345.678), "1.234568e+04"),
            ("%g", Float(0.00001), "1e-05"),
            ("%g", Float(100.5), "100.5"),
            ("%.3s", String("abcdef"), "abc"),
            ("%05d", Integer(-42), "-0042"),
            ("%c", Integer(65), "A"),
        ] {
            assert_eq!(shown(of_printf(text), &[value]), expected, "{text}");
        }
    }

    #[test]
    fn format_is_that_of_fmt() {
        use Shown::{Float, Integer, String};
        for (text, value, expected) in [
            ("{:,}", Integer(1_234_567), "1,234,567"),
            ("{:05d}", Integer(42), "00042"),
            ("{:>5}|{:<5}|{:^5}|", String("a"), "    a|a    |  a  |"),
            ("{:.2f} {{}}", Float(1.5), "1.50 {}"),
            ("{:*^7}", Integer(12), "**12***"),
            ("{}", Float(1.5), "1.5"),
            ("{:#x}", Integer(255), "0xff"),
        ] {
            let values = [value; 3];
            assert_eq!(shown(of_format(text), &values), expected, "{text}");
        }
        let two = [Integer(1), String("b")];
        assert_eq!(shown(of_format("{1} {0}"), &two), "b 1");
        assert!(of_format("{").is_err() && of_format("}").is_err());
    }
}
