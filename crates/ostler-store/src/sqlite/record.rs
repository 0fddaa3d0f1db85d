//! SQL statements about records.

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::fault::Fault;
use super::int;
use super::writer::Cx;
use crate::{Error, Expected, Filter, Page, Put, Record, Timestamp};

/// The limit of one list, in bytes of bodies; at most one record exceeds it.
const MOST_BYTES: usize = 8 << 20;

const COLUMNS: &str = "kind, id, version, owner, updated, body";

pub(super) fn put(cx: &Cx<'_>, puts: &[Put]) -> Result<Vec<Record>, Fault> {
    puts.iter().map(|change| put_one(cx, change)).collect()
}

fn put_one(cx: &Cx<'_>, put: &Put) -> Result<Record, Fault> {
    let there = check(cx.connection, &put.kind, &put.id, put.expected)?;
    let (before, updated) = match there {
        Some(there) => there,
        None => (removed_version(cx.connection)?, Timestamp::default()),
    };
    let version = before + 1;
    let updated = cx.time.wall().max(updated);
    let sql = "INSERT INTO record (kind, id, version, owner, updated, body)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (kind, id) DO UPDATE SET version = ?3, owner = ?4, updated = ?5, body = ?6";
    cx.connection.prepare_cached(sql)?.execute(params![
        put.kind,
        put.id,
        int(version),
        put.owner,
        updated.as_millis(),
        put.body.to_string()
    ])?;
    Ok(Record {
        kind: put.kind.clone(),
        id: put.id.clone(),
        version,
        owner: put.owner.clone(),
        body: put.body.clone(),
        updated,
    })
}

pub(super) fn remove(cx: &Cx<'_>, kind: &str, id: &str, expected: Expected) -> Result<(), Fault> {
    let Some((version, _)) = check(cx.connection, kind, id, expected)? else { return Ok(()) };
    let sql = "UPDATE counter SET value = max(value, ?) WHERE name = 'removed_version'";
    cx.connection.prepare_cached(sql)?.execute([int(version)])?;
    let sql = "DELETE FROM record WHERE kind = ? AND id = ?";
    cx.connection.prepare_cached(sql)?.execute([kind, id])?;
    Ok(())
}

/// Version and time of the stored record, if it is as expected.
fn check(
    connection: &Connection,
    kind: &str,
    id: &str,
    expected: Expected,
) -> Result<Option<(u64, Timestamp)>, Fault> {
    let sql = "SELECT version, updated FROM record WHERE kind = ? AND id = ?";
    let mut statement = connection.prepare_cached(sql)?;
    let there = statement
        .query_row([kind, id], |row| Ok((row.get(0)?, Timestamp::from_millis(row.get(1)?))))
        .optional()?;
    let found = there.map(|(version, _)| version);
    let as_expected = match expected {
        Expected::Any => true,
        Expected::Absent => found.is_none(),
        Expected::Version(version) => found == Some(version),
    };
    if !as_expected {
        return Err(Error::Conflict { kind: kind.to_owned(), id: id.to_owned(), found }.into());
    }
    Ok(there)
}

/// A new record must not reuse the version of a removed one, or a writer that read the old one would not notice.
fn removed_version(connection: &Connection) -> rusqlite::Result<u64> {
    let sql = "SELECT value FROM counter WHERE name = 'removed_version'";
    connection.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

pub(super) fn get(connection: &Connection, kind: &str, id: &str) -> Result<Option<Record>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM record WHERE kind = ? AND id = ?");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([kind, id])?;
    rows.next()?.map(read_row).transpose()
}

pub(super) fn list(
    connection: &Connection,
    kind: &str,
    filter: &Filter,
    page: &Page,
) -> Result<Vec<Record>, Fault> {
    let (sql, values) = question(kind, filter, page);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let (mut records, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()?
        && bytes < MOST_BYTES
    {
        bytes += row.get_ref(5)?.as_bytes().map_err(rusqlite::Error::from)?.len();
        records.push(read_row(row)?);
    }
    Ok(records)
}

pub(super) fn count(
    connection: &Connection,
    kind: &str,
    filter: &Filter,
    page: &Page,
    most: usize,
) -> Result<usize, Fault> {
    let page = Page { limit: most, ..page.clone() };
    let (sql, values) = select("1", kind, filter, &page);
    let sql = format!("SELECT count(*) FROM ({sql})");
    let mut statement = connection.prepare_cached(&sql)?;
    let found: u64 = statement.query_row(params_from_iter(values), |row| row.get(0))?;
    Ok(usize::try_from(found).unwrap_or(usize::MAX))
}

pub(super) fn count_by(
    connection: &Connection,
    kind: &str,
    filter: &Filter,
    field: &str,
    most: usize,
) -> Result<Vec<(String, usize)>, Fault> {
    let (sql, values) = groups(kind, filter, field, most);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((row.get(0)?, usize::try_from(row.get::<_, u64>(1)?).unwrap_or(usize::MAX)));
    }
    Ok(found)
}

/// The SQL that counts by a field.
fn groups(kind: &str, filter: &Filter, field: &str, most: usize) -> (String, Vec<Sql>) {
    let all = Page { limit: i64::MAX as usize, ..Page::default() };
    // The field name is validated, see `check`.
    let columns = format!("body ->> '$.{field}' AS value, json_type(body, '$.{field}') AS type");
    let (sql, mut values) = select(&columns, kind, filter, &all);
    values.push(int(most as u64).into());
    let sql =
        format!("SELECT value, count(*) FROM ({sql}) WHERE type = 'text' GROUP BY value LIMIT ?");
    (sql, values)
}

/// The SQL for a filter, and its parameters.
fn question(kind: &str, filter: &Filter, page: &Page) -> (String, Vec<Sql>) {
    select(COLUMNS, kind, filter, page)
}

fn select(columns: &str, kind: &str, filter: &Filter, page: &Page) -> (String, Vec<Sql>) {
    let mut sql = format!("SELECT {columns} FROM record WHERE kind = ?");
    let mut values = vec![Sql::from(kind.to_owned())];
    let mut and = |condition: &str, value: String| {
        sql.push_str(" AND ");
        sql.push_str(condition);
        values.push(value.into());
    };
    if let Some(owner) = &filter.owner {
        and("owner = ?", owner.clone());
    }
    if let Some((field, text)) = &filter.field {
        // The field name is validated, see `check`, and written exactly as in the index. With several values of another
        // field, their index is the one to use: few records have them. Sessions and states have an index together.
        let aside = if filter.any_of.is_some() && field != "session" { "+" } else { "" };
        and(&format!("{aside}(body ->> '$.{field}') = ?"), text.clone());
    }
    if let Some((field, text)) = &filter.contains {
        and(&format!("instr(body ->> '$.{field}', ?) > 0"), text.clone());
    }
    if let Some(prefix) = &filter.prefix {
        and("id >= ?", prefix.clone());
        // The highest character, which no id contains.
        and("id < ?", format!("{prefix}{}", char::MAX));
    }
    if let Some((field, texts)) = &filter.any_of {
        let places = vec!["?"; texts.len()].join(", ");
        sql.push_str(&format!(" AND body ->> '$.{field}' IN ({places})"));
        values.extend(texts.iter().cloned().map(Sql::from));
    }
    // Sorting must not make SQLite read the whole kind when few records have one of these values.
    let id = if filter.any_of.is_some() { "+id" } else { "id" };
    let order = page.by.as_ref().map_or(id.to_owned(), |field| format!("body ->> '$.{field}'"));
    if let Some(after) = &page.after {
        let beyond = if page.descending { '<' } else { '>' };
        sql.push_str(&format!(" AND {order} {beyond} ?"));
        values.push(after.clone().into());
    }
    if page.by.is_some() {
        // Written exactly as in the index.
        sql.push_str(&format!(" AND {order} IS NOT NULL"));
    }
    let direction = if page.descending { " DESC" } else { "" };
    sql.push_str(&format!(" ORDER BY {order}{direction} LIMIT ?"));
    values.push(int(page.limit as u64).into());
    (sql, values)
}

fn read_row(row: &Row<'_>) -> Result<Record, Fault> {
    let (kind, id): (String, String) = (row.get(0)?, row.get(1)?);
    let text = row.get_ref(5)?.as_str().map_err(|error| error.to_string());
    let body = text.and_then(|text| serde_json::from_str(text).map_err(|error| error.to_string()));
    let body = body.map_err(|why| Error::Damaged { what: format!("{kind} {id}"), why })?;
    Ok(Record {
        version: row.get(2)?,
        owner: row.get(3)?,
        updated: Timestamp::from_millis(row.get(4)?),
        kind,
        id,
        body,
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, params_from_iter};

    use super::question;
    use crate::sqlite::schema::STEPS;
    use crate::{Filter, Page};

    #[test]
    fn every_list_query_uses_an_index() {
        let connection = Connection::open_in_memory().unwrap();
        STEPS.iter().for_each(|step| step(&connection).unwrap());
        let (owner, prefix) = (|| Some("ann".to_owned()), || Some("a".to_owned()));
        let field = |name: &str| Some((name.to_owned(), "open".to_owned()));
        let state = || field("state");
        let cases = [
            (Filter::default(), "record_id (kind=?)"),
            (
                Filter { prefix: prefix(), ..Filter::default() },
                "record_id (kind=? AND id>? AND id<?)",
            ),
            (Filter { owner: owner(), ..Filter::default() }, "record_owner (kind=? AND owner=?)"),
            (Filter { field: state(), ..Filter::default() }, "record_state (kind=? AND <expr>=?)"),
            (
                Filter { owner: owner(), field: state(), ..Filter::default() },
                "record_owner_state (kind=? AND owner=? AND <expr>=?)",
            ),
            (
                Filter { field: field("session"), ..Filter::default() },
                "record_session (kind=? AND <expr>=?)",
            ),
            (
                Filter { field: field("run"), ..Filter::default() },
                "record_run (kind=? AND <expr>=?)",
            ),
            (
                Filter { owner: owner(), field: field("digest"), ..Filter::default() },
                "record_digest (kind=? AND <expr>=? AND owner=?)",
            ),
            (
                Filter { owner: owner(), field: field("folder"), ..Filter::default() },
                "record_folder (kind=? AND owner=? AND <expr>=?)",
            ),
            (
                Filter { field: field("start.session"), ..Filter::default() },
                "record_start_session (kind=? AND <expr>=?)",
            ),
            (
                Filter { field: field("execution.session"), ..Filter::default() },
                "record_execution_session (kind=? AND <expr>=?)",
            ),
        ];
        let check = |filter: &Filter, page: &Page, index: &str| {
            let (sql, values) = question("task", filter, page);
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let steps = plan.query_map(params_from_iter(values), |row| row.get(3)).unwrap();
            let steps: Vec<String> = steps.map(Result::unwrap).collect();
            let mut expected = vec![format!("SEARCH record USING INDEX {index}")];
            if filter.any_of.is_some() {
                // Few records have one of these values.
                expected.push("USE TEMP B-TREE FOR ORDER BY".to_owned());
            }
            assert_eq!(steps, expected, "{filter:?} {page:?}");
        };
        for (filter, index) in cases {
            for descending in [false, true] {
                check(&filter, &Page { descending, ..Page::default() }, index);
            }
        }
        let any_of = Some(("state".to_owned(), vec!["open".to_owned(), "shut".to_owned()]));
        let live = Filter { field: field("session"), any_of, ..Filter::default() };
        check(&live, &Page::default(), "record_session_state (kind=? AND <expr>=? AND <expr>=?)");
        let of_run = Filter { field: field("run"), ..live };
        check(&of_run, &Page::default(), "record_state (kind=? AND <expr>=?)");
        let contains = Some(("search".to_owned(), "x".to_owned()));
        let of_owner = Filter { owner: owner(), contains, ..Filter::default() };
        let page = Page { by: Some("place".to_owned()), descending: true, ..Page::default() };
        let next = Page { after: Some("1-a".to_owned()), ..page.clone() };
        check(&of_owner, &page, "record_owner_place (kind=? AND owner=?)");
        check(&of_owner, &next, "record_owner_place (kind=? AND owner=? AND <expr><?)");
        check(&Filter::default(), &next, "record_place (kind=? AND <expr><?)");
        let of_session = Filter { field: field("session"), ..Filter::default() };
        check(&of_session, &page, "record_session_place (kind=? AND <expr>=?)");
        check(&of_session, &next, "record_session_place (kind=? AND <expr>=? AND <expr><?)");
        let page = Page { by: Some("begun".to_owned()), ..Page::default() };
        let next = Page { after: Some("1-a".to_owned()), ..page.clone() };
        let of_space = Filter { field: field("setup.space"), ..Filter::default() };
        check(&of_space, &page, "record_space (kind=? AND <expr>=?)");
        check(&of_space, &next, "record_space (kind=? AND <expr>=? AND <expr>>?)");
        let of_owner = Filter { owner: owner(), ..of_space };
        check(
            &of_owner,
            &next,
            "record_space_owner (kind=? AND <expr>=? AND owner=? AND <expr>>?)",
        );
    }
}
