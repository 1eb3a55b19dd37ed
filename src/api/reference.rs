//! The reference of the API: the `OpenAPI` document, a page generated from it, and a text for
//! language models. All of it is embedded.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use warp::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS};
use warp::http::{HeaderValue, StatusCode};
use warp::reply::Response;

use super::reply;

const OPENAPI: &str = include_str!("../../data/openapi.json");
const LLMS: &str = include_str!("../../data/llms.txt");
const STYLE: &str = include_str!("../../data/reference.css");

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// The reference changes only with the program.
const CACHE_BRIEFLY: HeaderValue = HeaderValue::from_static("public, max-age=300");
/// The page consists of text and style only.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'",
);
const METHODS: [&str; 2] = ["get", "post"];

pub(super) fn openapi() -> Response {
    fixed(reply::JSON, OPENAPI)
}

pub(super) fn llms() -> Response {
    fixed(TEXT, LLMS)
}

/// `page` is the result of [`page`].
pub(super) fn docs(page: &str) -> Response {
    let mut response = fixed(reply::HTML, page);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY);
    response
}

fn fixed(kind: HeaderValue, text: &str) -> Response {
    let mut response = reply::whole(StatusCode::OK, kind, text.as_bytes().to_vec());
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, CACHE_BRIEFLY);
    headers.insert(X_CONTENT_TYPE_OPTIONS, reply::NO_SNIFF);
    response
}

/// Generates the reference page. Writing to a string cannot fail.
pub(super) fn page() -> String {
    let document: Value = serde_json::from_str(OPENAPI).unwrap_or_default();
    let mut out = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>blotter: reference</title>\
         <style>{STYLE}</style><body><main><h1>blotter: reference</h1>"
    );
    paragraphs(&mut out, at(&document, "info"));
    out.push_str("<p>As a document: <a href=\"/openapi.json\">openapi.json</a></p><nav><ul>");
    let operations = || {
        members(at(&document, "paths")).flat_map(|(path, item)| {
            METHODS.iter().filter_map(move |method| Some((path, *method, item.get(*method)?)))
        })
    };
    for (path, method, operation) in operations() {
        let name = escape(&format!("{} {path}", method.to_uppercase()));
        let (id, summary) = (text(operation, "operationId"), text(operation, "summary"));
        let _ = write!(out, "<li><a href=\"#{id}\"><code>{name}</code></a> {summary}</li>");
    }
    out.push_str("</ul></nav>");
    for (path, method, operation) in operations() {
        describe(&mut out, &document, path, method, operation);
    }
    out.push_str("<h2 id=\"schemas\">Shapes</h2>");
    for (name, schema) in members(at(at(&document, "components"), "schemas")) {
        let name = escape(name);
        let _ = write!(out, "<h3 id=\"{name}\">{name}</h3>");
        paragraphs(&mut out, schema);
        shape(&mut out, schema);
    }
    out.push_str("</main></body></html>\n");
    out
}

fn describe(out: &mut String, document: &Value, path: &str, method: &str, operation: &Value) {
    let (id, name) = (text(operation, "operationId"), escape(path));
    let _ = write!(out, "<h2 id=\"{id}\"><code>{} {name}</code></h2>", method.to_uppercase());
    paragraphs(out, operation);
    let parameters = items(at(operation, "parameters")).map(|one| resolved(document, one));
    table(
        out,
        ["Parameter", "In", "Type", "Meaning"],
        parameters.map(|one| {
            let kind = kind_of(at(one, "schema"));
            [
                format!("<code>{}</code>", text(one, "name")),
                text(one, "in"),
                kind,
                text(one, "description"),
            ]
        }),
    );
    let answers = members(at(operation, "responses"));
    table(
        out,
        ["Status", "Type", "Headers", "Meaning"],
        answers.map(|(status, answer)| {
            let answer = resolved(document, answer);
            let kinds: Vec<String> = members(at(answer, "content"))
                .map(|(kind, body)| format!("{} {}", escape(kind), kind_of(at(body, "schema"))))
                .collect();
            let headers: Vec<String> =
                members(at(answer, "headers")).map(|(name, _)| escape(name)).collect();
            [status.to_owned(), kinds.join("<br>"), headers.join(", "), text(answer, "description")]
        }),
    );
}

fn shape(out: &mut String, schema: &Value) {
    let required: Vec<&Value> = items(at(schema, "required")).collect();
    table(
        out,
        ["Member", "Type", "", "Meaning"],
        members(at(schema, "properties")).map(|(name, one)| {
            let always = required.iter().any(|required| *required == name);
            let note = if always { "" } else { "not always there" };
            let (name, kind) = (format!("<code>{}</code>", escape(name)), kind_of(one));
            [name, kind, note.to_owned(), text(one, "description")]
        }),
    );
    let one_of: Vec<String> = items(at(schema, "oneOf")).map(kind_of).collect();
    if !one_of.is_empty() {
        let _ = write!(out, "<p>One of: {}</p>", one_of.join(", "));
    }
}

fn table(out: &mut String, heads: [&str; 4], rows: impl Iterator<Item = [String; 4]>) {
    let row = |out: String, row: [String; 4]| {
        out + "<tr>" + &row.map(|cell| format!("<td>{cell}</td>")).concat() + "</tr>"
    };
    let rows = rows.fold(String::new(), row);
    if !rows.is_empty() {
        let heads = heads.map(|head| format!("<th scope=\"col\">{head}</th>")).concat();
        let _ = write!(out, "<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>");
    }
}

/// A schema's type in a word, with a link if it is a named schema.
fn kind_of(schema: &Value) -> String {
    if let Some(name) = at(schema, "$ref").as_str().and_then(|at| at.rsplit('/').next()) {
        let name = escape(name);
        return format!("<a href=\"#{name}\">{name}</a>");
    }
    let word = |kind: &Value| escape(kind.as_str().unwrap_or_default());
    let kind = at(schema, "type");
    match kind.as_array() {
        Some(kinds) => kinds.iter().map(word).collect::<Vec<_>>().join(" or "),
        None if kind == "array" => format!("array of {}", kind_of(at(schema, "items"))),
        None => word(kind),
    }
}

fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let at = at(value, "$ref").as_str().and_then(|at| at.strip_prefix('#'));
    at.and_then(|at| document.pointer(at)).unwrap_or(value)
}

/// A member; null if there is none.
fn at<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&Value::Null)
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let map = value.as_object().into_iter();
    map.flat_map(Map::iter).map(|(name, value)| (name.as_str(), value))
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn paragraphs(out: &mut String, of: &Value) {
    for part in text(of, "description").split("\n\n").filter(|part| !part.is_empty()) {
        let _ = write!(out, "<p>{part}</p>");
    }
}

fn text(of: &Value, name: &str) -> String {
    escape(at(of, name).as_str().unwrap_or_default())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
