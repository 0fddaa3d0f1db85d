//! What commands are judged to be.

mod nested;
mod oracle;
mod table;
