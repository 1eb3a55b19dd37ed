//! Compressed streams: slices of a response are compressed on separate threads while the next rows
//! are read, and are sent in order.
//!
//! Many clients stop without an error after the first member of a gzip body or the first frame of a
//! zstd body, so a body is a single member or frame. The blocks of a gzip slice refer to nothing
//! before the slice, so several slices are compressed concurrently and their checksums combined.
//! Those of zstd continue the state of the blocks before, so one slice is compressed at a time.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress};
use futures_util::{StreamExt as _, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinHandle, spawn_blocking, yield_now};

use super::coding::{Coding, Frames, GZIP_LEVEL, ZSTD_LEVEL};
use super::limits::ApiLimits;

/// Slices up to this size are compressed by the reading task, since waking a thread would take
/// longer. The first slice is one of these, so that compression does not delay the first byte.
const INLINE_BYTES_MAX: usize = 16 * 1024;

/// RFC 1952, section 2.3: deflate, no name and no time, the quickest level, an unknown system.
const GZIP_HEADER: [u8; 10] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 4, 255];
/// An empty final block (RFC 1951, section 3.2.6).
const DEFLATE_END: [u8; 2] = [3, 0];
/// The length fields of the empty block that ends a flush (RFC 1951, section 3.2.4).
const DEFLATE_MARK: [u8; 4] = [0, 0, 255, 255];
/// Space for the headers of blocks.
const DEFLATE_SPARE_BYTES: usize = 1024;

type Zstd = zstd::stream::write::Encoder<'static, Vec<u8>>;

/// Compresses the streams of all clients.
#[derive(Debug, Clone)]
pub(super) struct Packing {
    slice_bytes: usize,
    slices_at_once: usize,
    /// Permits for threads. A response that gets none compresses in its own task.
    threads: Arc<Semaphore>,
}

impl Packing {
    pub(super) fn new(limits: &ApiLimits) -> Self {
        let ApiLimits { pack_slice_bytes, pack_slices_at_once, pack_threads_max, .. } = *limits;
        Self {
            slice_bytes: pack_slice_bytes,
            slices_at_once: pack_slices_at_once,
            threads: Arc::new(Semaphore::new(pack_threads_max)),
        }
    }

    /// The encoded pieces of a body. Input is flushed as soon as no further input is ready, so that
    /// a line arrives when it was written.
    pub(super) fn frames(&self, coding: Coding, frames: impl Frames) -> Pin<Box<dyn Frames>> {
        let packer = match coding {
            Coding::Identity => return Box::pin(frames),
            Coding::Gzip => Packer::Gzip(Member::default()),
            Coding::Zstd => Packer::Zstd(None),
        };
        let pipeline = Pipeline {
            frames: Box::pin(frames),
            packing: self.clone(),
            packer,
            waiting: Waiting::default(),
            jobs: VecDeque::new(),
            stage: Stage::New,
            input_ended: false,
        };
        Box::pin(stream::unfold(pipeline, |mut pipeline| async move {
            // Writing to memory does not fail; an error would end the response.
            let piece = pipeline.next_piece().await?.ok()?;
            Some((Ok::<_, Infallible>(Bytes::from(piece)), pipeline))
        }))
    }
}

/// One response: its uncompressed bytes, and the slices on threads, oldest first.
struct Pipeline {
    frames: Pin<Box<dyn Frames>>,
    packing: Packing,
    packer: Packer,
    waiting: Waiting,
    jobs: VecDeque<JoinHandle<Packed>>,
    stage: Stage,
    input_ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    /// The first slice was just returned; the connection writes it before more is read.
    Begun,
    Going,
    Finished,
}

impl Pipeline {
    async fn next_piece(&mut self) -> Option<io::Result<Vec<u8>>> {
        if self.stage == Stage::Begun {
            self.stage = Stage::Going;
            yield_now().await;
        }
        loop {
            if let Some(piece) = self.begin_slices() {
                return Some(piece);
            }
            let takes_more = !self.input_ended && self.waiting.bytes < self.packing.slice_bytes;
            match self.jobs.front_mut() {
                Some(job) if takes_more => tokio::select! {
                    biased;
                    packed = job => return Some(self.collect(packed)),
                    frame = self.frames.next() => self.take(frame),
                },
                Some(job) => {
                    let packed = job.await;
                    return Some(self.collect(packed));
                }
                None if takes_more => {
                    let frame = self.frames.next().await;
                    self.take(frame);
                }
                None if self.stage == Stage::Finished => return None,
                None => {
                    self.stage = Stage::Finished;
                    return Some(self.packer.finish());
                }
            }
        }
    }

    fn take(&mut self, frame: Option<Result<Bytes, Infallible>>) {
        match frame {
            Some(Ok(frame)) => self.waiting.push(frame),
            None => self.input_ended = true,
        }
    }

    /// Starts as many slices as may be compressed concurrently. A slice that gets no thread, or is
    /// too small for one, is compressed here and returned, unless earlier slices are still open.
    fn begin_slices(&mut self) -> Option<io::Result<Vec<u8>>> {
        while let Some(size) = self.next_slice_bytes() {
            let threads = &self.packing.threads;
            let permit = match size {
                ..=INLINE_BYTES_MAX => None,
                _ => Arc::clone(threads).try_acquire_owned().ok(),
            };
            if let Some(permit) = permit {
                let slice = self.waiting.split_to(size);
                match self.packer.tool() {
                    Ok(tool) => {
                        self.jobs.push_back(spawn_blocking(move || tool.pack(&slice, permit)));
                    }
                    Err(error) => return Some(Err(error)),
                }
            } else if self.jobs.is_empty() {
                if self.stage == Stage::New {
                    self.stage = Stage::Begun;
                }
                let slice = self.waiting.split_to(size);
                return Some(self.packer.pack_here(&slice));
            } else {
                return None;
            }
        }
        None
    }

    /// The size of the next slice, if there is one and it may start.
    fn next_slice_bytes(&self) -> Option<usize> {
        let at_once = match self.packer {
            Packer::Gzip(_) => self.packing.slices_at_once,
            Packer::Zstd(_) => 1,
        };
        let size_max = match self.stage {
            Stage::New => INLINE_BYTES_MAX,
            Stage::Begun | Stage::Going | Stage::Finished => self.packing.slice_bytes,
        };
        let may_begin = self.waiting.bytes > 0 && self.jobs.len() < at_once;
        may_begin.then(|| self.waiting.bytes.min(size_max))
    }

    fn collect(&mut self, packed: Result<Packed, JoinError>) -> io::Result<Vec<u8>> {
        self.jobs.pop_front();
        let Packed { tool, checksum, bytes } = packed.map_err(io::Error::other)?;
        self.packer.take_back(tool, &checksum);
        bytes
    }
}

/// Bytes of the body that are in no slice yet.
#[derive(Default)]
struct Waiting {
    parts: VecDeque<Bytes>,
    bytes: usize,
}

impl Waiting {
    fn push(&mut self, part: Bytes) {
        self.bytes += part.len();
        self.parts.push_back(part);
    }

    fn split_to(&mut self, size: usize) -> Vec<Bytes> {
        let (mut slice, mut left) = (Vec::new(), size);
        while left > 0
            && let Some(mut part) = self.parts.pop_front()
        {
            if part.len() > left {
                self.parts.push_front(part.split_off(left));
            }
            left -= part.len();
            slice.push(part);
        }
        self.bytes -= size - left;
        slice
    }
}

/// The state of a body between its slices.
enum Packer {
    Gzip(Member),
    /// `None` before the first slice, and while a thread has the encoder.
    Zstd(Option<Zstd>),
}

#[derive(Default)]
struct Member {
    begun: bool,
    checksum: Crc,
    /// The state of this task's slices: their short lines refer to earlier ones.
    running: Option<Compress>,
    /// Compressors that were reset.
    spare: Vec<Compress>,
}

impl Member {
    fn fresh(&mut self) -> Compress {
        self.spare.pop().unwrap_or_else(|| Compress::new(Compression::new(GZIP_LEVEL), false))
    }

    fn pack_here(&mut self, slice: &[Bytes]) -> io::Result<Vec<u8>> {
        let mut compress = self.running.take().unwrap_or_else(|| self.fresh());
        let mut bytes = self.header();
        bytes.append(&mut deflate(&mut compress, slice, &mut self.checksum)?);
        self.running = Some(compress);
        Ok(bytes)
    }

    /// The header, once.
    fn header(&mut self) -> Vec<u8> {
        if std::mem::replace(&mut self.begun, true) { Vec::new() } else { GZIP_HEADER.to_vec() }
    }

    fn finish(&mut self) -> Vec<u8> {
        let mut bytes = self.header();
        bytes.extend_from_slice(&DEFLATE_END);
        bytes.extend_from_slice(&self.checksum.sum().to_le_bytes());
        bytes.extend_from_slice(&self.checksum.amount().to_le_bytes());
        bytes
    }
}

impl Packer {
    /// The compressor of the next slice: with gzip a reset one, with zstd that of the slice before.
    fn tool(&mut self) -> io::Result<Tool> {
        match self {
            Self::Gzip(member) => {
                if let Some(mut running) = member.running.take() {
                    running.reset();
                    member.spare.push(running);
                }
                Ok(Tool::Deflate(member.fresh()))
            }
            Self::Zstd(encoder) => zstd_of(encoder).map(Tool::Zstd),
        }
    }

    fn take_back(&mut self, tool: Tool, checksum: &Crc) {
        match (self, tool) {
            (Self::Gzip(member), Tool::Deflate(mut compress)) => {
                compress.reset();
                member.checksum.combine(checksum);
                member.spare.push(compress);
            }
            (Self::Zstd(kept), Tool::Zstd(encoder)) => *kept = Some(encoder),
            (Self::Gzip(_), Tool::Zstd(_)) | (Self::Zstd(_), Tool::Deflate(_)) => {}
        }
    }

    fn pack_here(&mut self, slice: &[Bytes]) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(member) => member.pack_here(slice),
            Self::Zstd(kept) => {
                let mut encoder = zstd_of(kept)?;
                let bytes = zstd_blocks(&mut encoder, slice);
                *kept = Some(encoder);
                bytes
            }
        }
    }

    fn finish(&mut self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(member) => Ok(member.finish()),
            Self::Zstd(encoder) => zstd_of(encoder)?.finish(),
        }
    }
}

fn zstd_of(kept: &mut Option<Zstd>) -> io::Result<Zstd> {
    kept.take().map_or_else(|| Zstd::new(Vec::new(), ZSTD_LEVEL), Ok)
}

/// A compressor that a thread takes and returns.
enum Tool {
    Deflate(Compress),
    Zstd(Zstd),
}

struct Packed {
    tool: Tool,
    /// Checksum of the slice, used by gzip.
    checksum: Crc,
    bytes: io::Result<Vec<u8>>,
}

impl Tool {
    fn pack(mut self, slice: &[Bytes], permit: OwnedSemaphorePermit) -> Packed {
        let mut checksum = Crc::new();
        let bytes = match &mut self {
            Self::Deflate(compress) => deflate(compress, slice, &mut checksum),
            Self::Zstd(encoder) => zstd_blocks(encoder, slice),
        };
        drop(permit);
        Packed { tool: self, checksum, bytes }
    }
}

/// Compresses a whole slice up to a flush, so that a reader can decode it at once.
///
/// The capacity suffices for incompressible bytes: if a flush runs out of space, the next call may
/// omit the end of the last block, so that the slice does not end on a byte boundary. The writers
/// of the library lose it in this way (seen with `flate2` 1.1 on `miniz_oxide` 0.9).
fn deflate(compress: &mut Compress, slice: &[Bytes], checksum: &mut Crc) -> io::Result<Vec<u8>> {
    let size: usize = slice.iter().map(Bytes::len).sum();
    let taken_before = compress.total_in();
    let mut packed = Vec::with_capacity(size + size / 8 + DEFLATE_SPARE_BYTES);
    for part in slice {
        checksum.update(part);
        compress.compress_vec(part, &mut packed, FlushCompress::None)?;
    }
    compress.compress_vec(&[], &mut packed, FlushCompress::Sync)?;
    let is_all = usize::try_from(compress.total_in() - taken_before) == Ok(size);
    if !is_all || !packed.ends_with(&DEFLATE_MARK) {
        return Err(io::Error::other("a slice does not end with a whole block"));
    }
    packed.shrink_to_fit();
    Ok(packed)
}

fn zstd_blocks(encoder: &mut Zstd, slice: &[Bytes]) -> io::Result<Vec<u8>> {
    slice.iter().try_for_each(|part| encoder.write_all(part))?;
    encoder.flush()?;
    Ok(std::mem::take(encoder.get_mut()))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const CODINGS: [Coding; 2] = [Coding::Gzip, Coding::Zstd];

    fn packing(threads: usize, slices_at_once: usize) -> Packing {
        slices_of(40_000, threads, slices_at_once)
    }

    fn slices_of(bytes: usize, threads: usize, slices_at_once: usize) -> Packing {
        Packing::new(&ApiLimits {
            pack_threads_max: threads,
            pack_slices_at_once: slices_at_once,
            pack_slice_bytes: bytes,
            ..ApiLimits::default()
        })
    }

    async fn packed(packing: &Packing, coding: Coding, frames: impl Frames) -> Vec<Bytes> {
        packing.frames(coding, frames).map(|piece| piece.unwrap()).collect().await
    }

    /// Decodes the first gzip member or zstd frame alone, as most clients do, and returns how many
    /// bytes follow it.
    fn first_part(coding: Coding, sent: &[u8]) -> (Vec<u8>, usize) {
        let mut read = Vec::new();
        if coding == Coding::Gzip {
            let mut decoder = flate2::bufread::GzDecoder::new(sent);
            decoder.read_to_end(&mut read).unwrap();
            return (read, decoder.into_inner().len());
        }
        let mut decoder = zstd::Decoder::with_buffer(sent).unwrap().single_frame();
        decoder.read_to_end(&mut read).unwrap();
        (read, decoder.finish().len())
    }

    /// Everything sent so far can be read before more is sent.
    #[tokio::test]
    async fn every_piece_can_be_read_when_it_comes() {
        let lines = ["{\"trades\":[]}\n", "\n", "{\"complete\":true}\n"];
        for coding in CODINGS {
            let frames = stream::iter(lines).map(|line| Ok(Bytes::from_static(line.as_bytes())));
            let pieces = packed(&packing(2, 2), coding, frames).await;
            assert_eq!(pieces.len(), lines.len() + 1);
            let mut sent = Vec::new();
            for (at, piece) in pieces.iter().enumerate() {
                sent.extend_from_slice(piece);
                let expected = lines[..lines.len().min(at + 1)].concat();
                let mut read = vec![0; expected.len()];
                match coding {
                    Coding::Gzip => {
                        flate2::read::GzDecoder::new(&*sent).read_exact(&mut read).unwrap();
                    }
                    Coding::Zstd | Coding::Identity => {
                        zstd::Decoder::new(&*sent).unwrap().read_exact(&mut read).unwrap();
                    }
                }
                assert_eq!(String::from_utf8(read).unwrap(), expected);
            }
        }
    }

    /// Frames of sizes around the inline limit and the slice size.
    fn body() -> Vec<Bytes> {
        let text = |at: usize, size: usize| {
            let line = format!("{{\"signature\":\"{}\"}}\n", at.wrapping_mul(0x9E37_79B9));
            Bytes::from(line.bytes().cycle().take(size).collect::<Vec<u8>>())
        };
        let sizes = [100_000, 1, 16 * 1024, 16 * 1024 + 1, 39_999, 40_000, 40_001, 300_000, 10];
        sizes.into_iter().cycle().take(40).enumerate().map(|(at, size)| text(at, size)).collect()
    }

    #[tokio::test]
    async fn a_body_of_many_slices_is_one_member_or_frame() {
        let body = body();
        for (threads, at_once) in [(0, 2), (1, 1), (1, 2), (2, 2), (8, 3)] {
            for coding in CODINGS {
                let frames = stream::iter(body.clone()).map(Ok);
                let pieces = packed(&packing(threads, at_once), coding, frames).await;
                let (read, left) = first_part(coding, &pieces.concat());
                assert!(read == body.concat(), "{coding:?} by {threads} threads");
                assert_eq!(left, 0, "{coding:?} by {threads} threads");
            }
        }
    }

    /// Lines with repeated members and a random one.
    fn lines(state: &mut u64, count: usize, digits: usize) -> Bytes {
        let mut text = String::new();
        for _ in 0..count {
            text.push_str("{\"side\":\"buy\",\"amount\":\"1.5\",\"signature\":\"");
            for _ in 0..digits {
                *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.extend(char::from_digit(u32::try_from(*state >> 60).unwrap(), 16));
            }
            text.push_str("\"}\n");
        }
        text.into()
    }

    /// Compressed bytes may exactly fill a buffer: nothing of the slice may stay in the compressor.
    #[tokio::test]
    async fn slices_are_whole_whatever_size_they_pack_to() {
        let packing = slices_of(ApiLimits::default().pack_slice_bytes, 2, 2);
        let mut state = 1;
        for digits in 1..=90 {
            let body: Vec<Bytes> = (0..8).map(|_| lines(&mut state, 400, digits)).collect();
            let frames = stream::iter(body.clone()).map(Ok);
            let pieces = packed(&packing, Coding::Gzip, frames).await;
            let (read, left) = first_part(Coding::Gzip, &pieces.concat());
            assert!(read == body.concat(), "{digits} digits");
            assert_eq!(left, 0, "{digits} digits");
        }
    }

    #[tokio::test]
    async fn an_empty_body_is_whole_too() {
        for coding in CODINGS {
            let pieces = packed(&packing(2, 2), coding, stream::empty()).await;
            assert_eq!(first_part(coding, &pieces.concat()), (Vec::new(), 0));
        }
    }

    /// A client that stops reading stops the reading for it.
    #[tokio::test]
    async fn what_is_read_ahead_is_bounded() {
        for coding in CODINGS {
            let read = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&read);
            let frames = stream::iter(0..1000).map(move |_| {
                counted.fetch_add(30_000, Ordering::Relaxed);
                Ok(Bytes::from(vec![b'a'; 30_000]))
            });
            let mut packed = packing(2, 2).frames(coding, frames);
            let mut pieces = 0;
            while pieces < 20 {
                packed.next().await.unwrap().unwrap();
                pieces += 1;
            }
            // Two slices on threads, one buffered, and a frame beyond it.
            let most = (pieces + 2 + 1) * 40_000 + 30_000;
            assert!(read.load(Ordering::Relaxed) <= most, "{coding:?}: {read:?}");
        }
    }

    /// If all threads are taken, other responses do not wait.
    #[tokio::test]
    async fn an_answer_without_a_thread_packs_by_itself() {
        let packing = packing(1, 2);
        let _taken = Arc::clone(&packing.threads).try_acquire_owned().unwrap();
        for coding in CODINGS {
            let frames = stream::iter(body()).map(Ok);
            let pieces = packed(&packing, coding, frames).await;
            assert!(first_part(coding, &pieces.concat()).0 == body().concat(), "{coding:?}");
        }
    }
}
