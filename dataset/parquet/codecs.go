package parquet

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// The codecs of pages.
const (
	codecNone   = 0
	codecSnappy = 1
	codecGzip   = 2
	codecLZO    = 3
	codecBrotli = 4
	codecLZ4    = 5 // in frames as Hadoop writes them
	codecZstd   = 6
	codecLZ4Raw = 7
)

// unpacker decompresses pages, one after the other.
type unpacker struct{ zstd *zstd.Decoder }

// unpack decompresses src, which must unpack to size bytes. The result is in dst if that has room, and may be src.
func (u *unpacker) unpack(codec int32, dst, src []byte, size int) (out []byte, err error) {
	grown := func() []byte {
		if cap(dst) < size {
			dst = make([]byte, size)
		}
		return dst[:size]
	}
	switch codec {
	case codecNone:
		out = src
	case codecSnappy:
		const most = 22 // times the size: three bytes stand for at most 64
		n, failed := snappy.DecodedLen(src)
		if failed == nil && n == size && size/most <= len(src) {
			out, failed = snappy.Decode(grown(), src)
		}
		err = failed
	case codecGzip:
		z, failed := gzip.NewReader(bytes.NewReader(src))
		if failed == nil {
			out, failed = readUpTo(z, dst, size)
		}
		err = failed
	case codecBrotli:
		out, err = readUpTo(brotli.NewReader(bytes.NewReader(src)), dst, size)
	case codecZstd:
		if u.zstd == nil {
			u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(64<<20))
		}
		if err == nil {
			err = u.zstd.Reset(bytes.NewReader(src))
		}
		if err == nil {
			out, err = readUpTo(u.zstd, dst, size)
		}
	case codecLZ4Raw:
		out, err = unpackLZ4(dst[:0], src, size)
	case codecLZ4:
		out, err = unpackHadoop(dst[:0], src, size)
	case codecLZO:
		return nil, fmt.Errorf("pages that are compressed with LZO cannot be read: write the file with zstd: %w", ErrFormat)
	default:
		return nil, errDamaged("a page is compressed with the unknown codec %d", codec)
	}
	if err != nil {
		return nil, errDamaged("a page cannot be decompressed: %v", err)
	}
	if len(out) != size {
		return nil, errDamaged("a page decompresses to %d bytes, want %d", len(out), size)
	}
	return out, nil
}

// readUpTo reads size bytes, and one more if there is one. Memory grows with the bytes that are there.
func readUpTo(in io.Reader, dst []byte, size int) ([]byte, error) {
	b := bytes.NewBuffer(dst[:0])
	_, err := io.Copy(b, io.LimitReader(in, int64(size)+1))
	return b.Bytes(), err
}

var errLZ4 = errors.New("the LZ4 block is damaged")

// unpackLZ4 appends what an LZ4 block unpacks to, at most size bytes in all.
func unpackLZ4(dst, src []byte, size int) ([]byte, error) {
	length := func(n int) (int, bool) {
		if n < 15 {
			return n, true
		}
		for len(src) > 0 {
			b := src[0]
			if src, n = src[1:], n+int(b); n > size {
				return 0, false
			}
			if b != 255 {
				return n, true
			}
		}
		return 0, false
	}
	from := len(dst)
	for len(src) > 0 {
		token := src[0]
		src = src[1:]
		n, ok := length(int(token >> 4))
		if !ok || n > len(src) || len(dst)+n > size {
			return dst, errLZ4
		}
		if dst, src = append(dst, src[:n]...), src[n:]; len(src) == 0 {
			return dst, nil // the last sequence has no match
		}
		if len(src) < 2 {
			return dst, errLZ4
		}
		offset := int(binary.LittleEndian.Uint16(src))
		src = src[2:]
		if n, ok = length(int(token & 15)); !ok || offset == 0 || offset > len(dst)-from || len(dst)+n+4 > size {
			return dst, errLZ4
		}
		for n += 4; n > 0; {
			k := min(n, offset)
			dst = append(dst, dst[len(dst)-offset:len(dst)-offset+k]...)
			n -= k
		}
	}
	return dst, nil
}

// unpackHadoop unpacks blocks with their lengths before them. Some writers left these out.
func unpackHadoop(dst, src []byte, size int) ([]byte, error) {
	out, rest := dst, src
	for len(rest) >= 8 {
		whole, packed := binary.BigEndian.Uint32(rest), binary.BigEndian.Uint32(rest[4:])
		if uint64(packed) > uint64(len(rest)-8) || uint64(whole) > uint64(size-len(out)) {
			break
		}
		next, err := unpackLZ4(nil, rest[8:8+packed], int(whole))
		if err != nil || len(next) != int(whole) {
			break
		}
		out, rest = append(out, next...), rest[8+packed:]
	}
	if len(rest) == 0 {
		return out, nil
	}
	return unpackLZ4(dst[:0], src, size)
}
