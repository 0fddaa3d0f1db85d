//! How commands are classified.

mod nested;
mod oracle;
mod table;
