//! The page at `/`: its headers, its files, and that it loads nothing from other hosts.

use std::io::Read as _;

use bytes::Bytes;
use flate2::read::GzDecoder;
use warp::http::Response;

use crate::support::served::{World, header, json, text};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

async fn get(world: &World, path: &str, headers: &[(&str, &str)]) -> Response<Bytes> {
    world.send("GET", path, headers).await
}

/// The values of `src` and `href`.
fn links(html: &str) -> Vec<&str> {
    let after = html.split("src=\"").skip(1).chain(html.split("href=\"").skip(1));
    after
        .map(|rest| rest.split('"').next().unwrap())
        .filter(|link| !link.starts_with('#'))
        .collect()
}

/// The files that a script imports from its own folder.
fn imports(script: &str) -> Vec<&str> {
    let after = script.split("from \"./").skip(1);
    after.map(|rest| rest.split('"').next().unwrap()).collect()
}

#[tokio::test]
async fn the_page_is_open_to_all_and_runs_its_own_files_only() {
    let world = World::new();
    let page = get(&world, "/", &[]).await;
    assert_eq!(page.status(), 200);
    assert_eq!(header(&page, "content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(header(&page, "content-security-policy"), Some(POLICY));
    assert_eq!(header(&page, "x-content-type-options"), Some("nosniff"));
    assert_eq!(header(&page, "referrer-policy"), Some("no-referrer"));
    assert_eq!(header(&page, "cache-control"), Some("no-cache"));
    let html = text(&page);
    let markup = html.to_ascii_lowercase();
    for inline in ["<style", " style=", " onclick=", " onload=", "javascript:", "http:", "https:"] {
        assert!(!markup.contains(inline), "{inline}");
    }
    assert_eq!(markup.matches("<script").count(), markup.matches("<script src=").count());
    assert!(!html.contains("{version}"));
}

#[tokio::test]
async fn every_file_that_is_named_is_there_for_good() {
    let world = World::new();
    let page = get(&world, "/", &[]).await;
    let mut files: Vec<String> = links(text(&page)).into_iter().map(str::to_owned).collect();
    assert!(files.len() > 4, "{files:?}");
    let mut done = 0;
    while let Some(path) = files.get(done).cloned() {
        done += 1;
        let file = get(&world, &path, &[]).await;
        assert_eq!(file.status(), 200, "{path}");
        let keep = header(&file, "cache-control");
        assert_eq!(keep, Some("public, max-age=31536000, immutable"), "{path}");
        assert_eq!(header(&file, "x-content-type-options"), Some("nosniff"), "{path}");
        let kind = match path.rsplit_once('.').unwrap().1 {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            _ => "image/svg+xml",
        };
        assert_eq!(header(&file, "content-type"), Some(kind), "{path}");
        let is_style = kind.starts_with("text/css");
        assert!(!is_style || !text(&file).contains("url("), "{path}");
        let folder = path.rsplit_once('/').unwrap().0;
        for name in imports(text(&file)) {
            let path = format!("{folder}/{name}");
            if !files.contains(&path) {
                files.push(path);
            }
        }
    }
    assert!(files.iter().any(|path| path.ends_with("/pnl.js")), "{files:?}");
    for path in ["/page/0123456789abcdef/app.js", "/page/app.js", "/page/", "/index.html"] {
        assert_eq!(get(&world, path, &[]).await.status(), 404, "{path}");
    }
    let unknown = files.first().unwrap().rsplit_once('/').unwrap().0.to_owned() + "/Cargo.toml";
    assert_eq!(get(&world, &unknown, &[]).await.status(), 404);
}

#[tokio::test]
async fn what_a_browser_has_is_not_sent_again() {
    let world = World::new();
    let page = get(&world, "/", &[]).await;
    let tag = header(&page, "etag").unwrap().to_owned();
    for sent in [tag.clone(), format!("\"other\", {tag}"), "*".to_owned()] {
        let again = get(&world, "/", &[("if-none-match", &sent)]).await;
        assert_eq!(again.status(), 304, "{sent}");
        assert!(again.body().is_empty());
        assert_eq!(header(&again, "etag"), Some(&*tag));
        assert_eq!(header(&again, "content-security-policy"), Some(POLICY));
    }
    let other = get(&world, "/", &[("if-none-match", "\"other\"")]).await;
    assert_eq!(other.status(), 200);
}

#[tokio::test]
async fn the_page_is_packed_where_that_is_wanted_and_has_a_head() {
    let world = World::new();
    let plain = get(&world, "/", &[]).await;
    let packed = get(&world, "/", &[("accept-encoding", "gzip")]).await;
    assert_eq!(header(&packed, "content-encoding"), Some("gzip"));
    assert_eq!(header(&packed, "vary"), Some("accept-encoding"));
    assert!(packed.body().len() * 2 < plain.body().len());
    let mut unpacked = Vec::new();
    GzDecoder::new(packed.body().as_ref()).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain.body().as_ref());
    let head = world.send("HEAD", "/", &[]).await;
    assert_eq!((head.status().as_u16(), head.body().len()), (200, 0));
    assert_eq!(world.send("POST", "/", &[]).await.status(), 405);
}

#[tokio::test]
async fn chains_name_their_explorers() {
    let world = World::new();
    let chains = json(&get(&world, "/v1/chains", &[]).await);
    let sites: Vec<&str> = chains["chains"]
        .as_array()
        .unwrap()
        .iter()
        .map(|chain| chain["explorer"].as_str().unwrap())
        .collect();
    assert!(sites.contains(&"https://solscan.io"));
    assert!(sites.iter().all(|site| site.starts_with("https://") && !site.ends_with('/')));
}
