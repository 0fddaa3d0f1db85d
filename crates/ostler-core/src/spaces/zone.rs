//! Time zones by their names.

use ostler_base::error::{ApiError, Fallible, shown};

/// The zone of a space that names none.
pub(super) const USUAL: &str = "UTC";

/// Refuses a time zone that this machine does not know.
pub(super) fn check(zone: &str) -> Fallible<()> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+');
    // The name becomes a part of a path in the time zone database.
    let is_name = zone.len() <= 64 && !zone.starts_with('/') && zone.chars().all(is_fine);
    if is_name && (zone == USUAL || jiff::tz::TimeZone::get(zone).is_ok()) {
        return Ok(());
    }
    let message = format!("there is no time zone {}", shown(zone));
    Err(ApiError::invalid("zone", message).hint("use a name such as Europe/Berlin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_time_zones_are_accepted() {
        for zone in ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"] {
            check(zone).unwrap();
        }
        for zone in
            ["", "Berlin", "Europe/../etc/passwd", "/etc/passwd", "CET+1CEST", "Mars/Olympus"]
        {
            assert!(check(zone).is_err(), "{zone}");
        }
    }
}
