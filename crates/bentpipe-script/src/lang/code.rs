//! The subset of Python that scripts use in `%{ }%`: assignments and assertions over numbers. `print` does nothing;
//! the message of an assertion is not evaluated.

use std::collections::BTreeMap;

/// Max words and signs of an expression: each may nest the tree of nodes one deeper, and functions on trees recurse.
const MAX_PIECES: usize = 1000;

/// Parsed code.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    statements: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq)]
enum Statement {
    /// The text of the assertion, and its condition.
    Assert(String, Node),
    Assign(String, Node),
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Number(f64),
    Name(String),
    Not(Box<Node>),
    Minus(Box<Node>),
    Binary(String, Box<Node>, Box<Node>),
    /// `a < b <= c`.
    Chain(Box<Node>, Vec<(String, Node)>),
}

/// Why code failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The failed assertion and the values of its names.
    Fails(String, Vec<(String, f64)>),
    /// A name without a value.
    Unknown(String),
    /// An undefined value: a division by zero.
    Undefined(String),
}

/// Parses code.
///
/// # Errors
/// Fails on anything but assignments, assertions and `print`.
pub fn compile(text: &str) -> Result<Code, String> {
    let mut statements = Vec::new();
    // A backslash joins lines.
    let text = text.replace("\\\n", " ");
    for line in text.lines() {
        let line = strip_comment(line);
        for part in split_outside(&line, ';') {
            let part = part.trim();
            if part.is_empty() || part.starts_with("print(") || part.starts_with("print ") {
                continue;
            }
            statements.push(statement(part)?);
        }
    }
    Ok(Code { statements })
}

impl Code {
    /// The names that the code reads before it assigns them.
    pub fn names(&self) -> Vec<String> {
        let (mut names, mut given) = (Vec::new(), Vec::new());
        for statement in &self.statements {
            let mut read = Vec::new();
            match statement {
                Statement::Assert(_, condition) => condition.names(&mut read),
                Statement::Assign(_, value) => value.names(&mut read),
            }
            names.extend(read.into_iter().filter(|name| !given.contains(name)));
            if let Statement::Assign(name, _) = statement {
                given.push(name.clone());
            }
        }
        names
    }

    /// Runs it. `variables` persist across pieces of code; `look` returns the values of all other names.
    ///
    /// # Errors
    /// Returns the first assertion that fails, or the first name without a value.
    pub fn run(&self, variables: &mut BTreeMap<String, f64>, look: &dyn Fn(&str) -> Option<f64>) -> Result<(), Fault> {
        for statement in &self.statements {
            match statement {
                Statement::Assign(name, value) => {
                    let value = value.value(variables, look)?;
                    variables.insert(name.clone(), value);
                }
                Statement::Assert(text, condition) => {
                    if condition.value(variables, look)? == 0.0 {
                        let mut names = Vec::new();
                        condition.names(&mut names);
                        names.dedup();
                        let known = |name: &String| variables.get(name).copied().or_else(|| look(name));
                        let values = names.iter().filter_map(|name| known(name).map(|v| (name.clone(), v)));
                        return Err(Fault::Fails(text.clone(), values.collect()));
                    }
                }
            }
        }
        Ok(())
    }
}

fn strip_comment(line: &str) -> String {
    let mut quote = None;
    let mut kept = String::new();
    for c in line.chars() {
        match quote {
            Some(q) if c == q => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == '#' => break,
            _ => {}
        }
        kept.push(c);
    }
    kept
}

/// Splits at `at` outside brackets and strings.
fn split_outside(text: &str, at: char) -> Vec<String> {
    let (mut parts, mut depth, mut quote) = (vec![String::new()], 0i32, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth -= 1,
            _ => {}
        }
        if c == at && depth == 0 && quote.is_none() {
            parts.push(String::new());
        } else {
            parts.last_mut().expect("one is there").push(c);
        }
    }
    parts
}

fn statement(text: &str) -> Result<Statement, String> {
    if let Some(condition) = text.strip_prefix("assert").filter(|rest| rest.starts_with([' ', '\t', '('])) {
        // The message follows the first comma.
        let parts = split_outside(condition, ',');
        let node = whole(&parts[0])?;
        return Ok(Statement::Assert(parts[0].trim().to_owned(), node));
    }
    let tokens = tokens(text)?;
    if let [Piece::Name(name), Piece::Sign(sign), ..] = &tokens[..] {
        if sign == "=" {
            return Ok(Statement::Assign(name.clone(), whole_of(&tokens[2..], text)?));
        }
        if let Some(operator) = sign.strip_suffix('=').filter(|o| ["+", "-", "*", "/"].contains(o)) {
            let value = Box::new(whole_of(&tokens[2..], text)?);
            let before = Box::new(Node::Name(name.clone()));
            return Ok(Statement::Assign(name.clone(), Node::Binary(operator.to_owned(), before, value)));
        }
    }
    Err(format!("`{text}`: expected an assertion, an assignment or print"))
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Number(f64),
    Name(String),
    Sign(String),
}

fn tokens(text: &str) -> Result<Vec<Piece>, String> {
    let chars: Vec<char> = text.chars().collect();
    let (mut at, mut pieces) = (0, Vec::new());
    while at < chars.len() {
        let c = chars[at];
        let start = at;
        if c.is_whitespace() {
            at += 1;
        } else if c.is_ascii_digit() || (c == '.' && chars.get(at + 1).is_some_and(char::is_ascii_digit)) {
            while chars.get(at).is_some_and(|c| c.is_ascii_alphanumeric() || *c == '.') {
                at += 1;
            }
            let digits: String = chars[start..at].iter().collect();
            let value = match digits.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok().map(|value| value as f64),
                None => digits.parse().ok(),
            };
            pieces.push(Piece::Number(value.ok_or_else(|| format!("`{digits}` is not a number"))?));
        } else if c.is_ascii_alphabetic() || c == '_' {
            while chars.get(at).is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_') {
                at += 1;
            }
            pieces.push(Piece::Name(chars[start..at].iter().collect()));
        } else {
            let two: String = chars[at..chars.len().min(at + 2)].iter().collect();
            let sign = match two.as_str() {
                "==" | "!=" | "<=" | ">=" | "<<" | ">>" | "//" | "+=" | "-=" | "*=" | "/=" => two,
                _ if "+-*/%()<>=&|^~".contains(c) => c.to_string(),
                _ => return Err(format!("`{text}`: unexpected `{c}`")),
            };
            at += sign.len();
            pieces.push(Piece::Sign(sign));
        }
    }
    Ok(pieces)
}

fn whole(text: &str) -> Result<Node, String> {
    whole_of(&tokens(text)?, text)
}

fn whole_of(pieces: &[Piece], text: &str) -> Result<Node, String> {
    if pieces.len() > MAX_PIECES {
        return Err(format!("an expression of {} words: expected at most {MAX_PIECES}", pieces.len()));
    }
    let mut reader = Reader { pieces, at: 0, depth: 0 };
    let node = reader.either().map_err(|what| format!("`{}`: expected {what}", text.trim()))?;
    if reader.at < pieces.len() {
        return Err(format!("`{}`: expected an operator", text.trim()));
    }
    Ok(node)
}

struct Reader<'a> {
    pieces: &'a [Piece],
    at: usize,
    depth: u32,
}

/// Operators from loosest to tightest; comparisons, `and`, `or` and `not` are looser.
const LEVELS: [&[&str]; 6] = [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "//", "%"]];

impl Reader<'_> {
    fn take(&mut self, signs: &[&str]) -> Option<String> {
        let found = match self.pieces.get(self.at)? {
            Piece::Sign(sign) | Piece::Name(sign) if signs.contains(&sign.as_str()) => sign.clone(),
            _ => return None,
        };
        self.at += 1;
        Some(found)
    }

    fn either(&mut self) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > 50 {
            return Err("fewer brackets".into());
        }
        let mut node = self.both()?;
        while self.take(&["or"]).is_some() {
            node = Node::Binary("or".into(), Box::new(node), Box::new(self.both()?));
        }
        self.depth -= 1;
        Ok(node)
    }

    fn both(&mut self) -> Result<Node, String> {
        let mut node = self.negation()?;
        while self.take(&["and"]).is_some() {
            node = Node::Binary("and".into(), Box::new(node), Box::new(self.negation()?));
        }
        Ok(node)
    }

    fn negation(&mut self) -> Result<Node, String> {
        let mut count = 0;
        while self.take(&["not"]).is_some() {
            count += 1;
        }
        let node = self.comparison()?;
        Ok((0..count).fold(node, |node, _| Node::Not(Box::new(node))))
    }

    fn comparison(&mut self) -> Result<Node, String> {
        let first = self.level(0)?;
        let mut rest = Vec::new();
        while let Some(sign) = self.take(&["==", "!=", "<=", ">=", "<", ">"]) {
            rest.push((sign, self.level(0)?));
        }
        Ok(if rest.is_empty() { first } else { Node::Chain(Box::new(first), rest) })
    }

    fn level(&mut self, level: usize) -> Result<Node, String> {
        let Some(signs) = LEVELS.get(level) else { return self.unit() };
        let mut node = self.level(level + 1)?;
        while let Some(sign) = self.take(signs) {
            node = Node::Binary(sign, Box::new(node), Box::new(self.level(level + 1)?));
        }
        Ok(node)
    }

    fn unit(&mut self) -> Result<Node, String> {
        let mut minus = 0;
        while self.take(&["-"]).is_some() {
            minus += 1;
        }
        let node = match self.pieces.get(self.at) {
            Some(Piece::Number(value)) => Node::Number(*value),
            Some(Piece::Name(name)) => match name.as_str() {
                "and" | "or" | "not" => return Err("a value".into()),
                "True" => Node::Number(1.0),
                "False" => Node::Number(0.0),
                _ => Node::Name(name.clone()),
            },
            Some(Piece::Sign(sign)) if sign == "(" => {
                self.at += 1;
                let inner = self.either()?;
                if !matches!(self.pieces.get(self.at), Some(Piece::Sign(sign)) if sign == ")") {
                    return Err("`)`".into());
                }
                inner
            }
            _ => return Err("a value".into()),
        };
        self.at += 1;
        Ok((0..minus).fold(node, |node, _| Node::Minus(Box::new(node))))
    }
}

impl Node {
    fn names(&self, names: &mut Vec<String>) {
        match self {
            Node::Number(_) => {}
            Node::Name(name) => names.push(name.clone()),
            Node::Not(inner) | Node::Minus(inner) => inner.names(names),
            Node::Binary(_, left, right) => {
                left.names(names);
                right.names(names);
            }
            Node::Chain(first, rest) => {
                first.names(names);
                rest.iter().for_each(|(_, node)| node.names(names));
            }
        }
    }

    fn value(&self, variables: &BTreeMap<String, f64>, look: &dyn Fn(&str) -> Option<f64>) -> Result<f64, Fault> {
        let truth = |holds: bool| if holds { 1.0 } else { 0.0 };
        Ok(match self {
            Node::Number(value) => *value,
            Node::Name(name) => {
                variables.get(name).copied().or_else(|| look(name)).ok_or_else(|| Fault::Unknown(name.clone()))?
            }
            Node::Not(inner) => truth(inner.value(variables, look)? == 0.0),
            Node::Minus(inner) => -inner.value(variables, look)?,
            Node::Binary(sign, left, right) => {
                let left = left.value(variables, look)?;
                match (sign.as_str(), left != 0.0) {
                    ("or", true) | ("and", false) => return Ok(left),
                    _ => {}
                }
                let right = right.value(variables, look)?;
                let whole = |operate: fn(i64, i64) -> i64| operate(left as i64, right as i64) as f64;
                if matches!(sign.as_str(), "/" | "//" | "%") && right == 0.0 {
                    return Err(Fault::Undefined("a division by zero".into()));
                }
                if matches!(sign.as_str(), "<<" | ">>") && right < 0.0 {
                    return Err(Fault::Undefined("a shift by a negative number".into()));
                }
                // Python's whole numbers have any length; the bound keeps the power finite.
                let power = || 2f64.powi(right.min(1000.0) as i32);
                match sign.as_str() {
                    "or" | "and" => right,
                    "+" => left + right,
                    "-" => left - right,
                    "*" => left * right,
                    "/" => left / right,
                    "//" => (left / right).floor(),
                    // Its sign is the divisor's.
                    "%" => match left % right {
                        rest if rest != 0.0 && (rest < 0.0) != (right < 0.0) => rest + right,
                        rest => rest,
                    },
                    "&" => whole(|a, b| a & b),
                    "|" => whole(|a, b| a | b),
                    "^" => whole(|a, b| a ^ b),
                    "<<" => left.trunc() * power(),
                    _ => (left.trunc() / power()).floor(),
                }
            }
            Node::Chain(first, rest) => {
                let mut left = first.value(variables, look)?;
                for (sign, node) in rest {
                    let right = node.value(variables, look)?;
                    let holds = match sign.as_str() {
                        "==" => left == right,
                        "!=" => left != right,
                        "<=" => left <= right,
                        ">=" => left >= right,
                        "<" => left < right,
                        _ => left > right,
                    };
                    if !holds {
                        return Ok(0.0);
                    }
                    left = right;
                }
                1.0
            }
        })
    }
}
