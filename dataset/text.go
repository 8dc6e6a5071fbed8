package dataset

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// decoder turns text into UTF-8.
type decoder func(*bufio.Reader) (*bufio.Reader, error)

// openText opens a text file as UTF-8 with line feeds: it unpacks gzip, goes by a
// byte order mark, and turns lone carriage returns into line feeds. Its errors do
// not name the file.
func openText(path string) (*bufio.Reader, *measuredFile, error) {
	return openDecoded(path, decodeMarked)
}

// openTextIn is openText for data in an encoding that ParseEncoding knows; empty: see openText.
func openTextIn(path, encoding string) (*bufio.Reader, *measuredFile, error) {
	return openDecoded(path, func(in *bufio.Reader) (*bufio.Reader, error) { return decodeAs(in, encoding) })
}

func openDecoded(path string, decode decoder) (*bufio.Reader, *measuredFile, error) {
	f, err := openMeasured(path)
	if err != nil {
		return nil, nil, err
	}
	in, err := decodeText(f, strings.HasSuffix(strings.ToLower(path), ".gz"), fileSize(f.size), decode)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return bufio.NewReaderSize(in, 1<<16), f, nil
}

// ReadText reads a text file into memory as data files are read: unpacked if it is gzip, with or without a byte order
// mark, UTF-8 or UTF-16, with lines that end as on any system. It returns UTF-8. Errors name the file.
func ReadText(path string) ([]byte, error) {
	in, closer, err := openText(path)
	if err != nil {
		return nil, pathError(path, err)
	}
	defer closer.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, pathError(path, textError(err))
	}
	if utf8.Valid(text) {
		return text, nil
	}
	for n, line := range bytes.Split(text, []byte("\n")) {
		if err := notUTF8Beside(fmt.Sprintf("line %d", n+1), string(line)); err != nil {
			return nil, pathError(path, err)
		}
	}
	return text, nil
}

// measuredFile is a file that counts the bytes read.
type measuredFile struct {
	*os.File
	size, read int64
}

func openMeasured(path string) (*measuredFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &measuredFile{File: f, size: info.Size()}, nil
}

// Read implements io.Reader.
func (f *measuredFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.read += int64(n)
	return n, err
}

// readShare returns the share of the file that was read, from 0 to 1; -1 if unknown.
func (f *measuredFile) readShare() float64 {
	if f == nil || f.size <= 0 {
		return -1
	}
	return min(1, float64(f.read)/float64(f.size))
}

// decodeText is openText for an open file of so many bytes; packed: the file must be gzip.
func decodeText(f io.Reader, packed bool, size fileSize, decode decoder) (io.Reader, error) {
	in := bufio.NewReaderSize(f, 1<<16)
	if start, _ := in.Peek(2); packed || string(start) == "\x1f\x8b" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, textError(err)
		}
		in = bufio.NewReaderSize(&unpacking{z, size.unpacked()}, 1<<16)
	}
	in, err := decode(in)
	if err != nil {
		return nil, err
	}
	return &lineEnds{in}, nil
}

// lineEnds turns carriage returns without a line feed after them into line feeds.
type lineEnds struct{ in *bufio.Reader }

// Read implements io.Reader.
func (l *lineEnds) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for i := 0; ; i++ {
		at := bytes.IndexByte(p[i:n], '\r')
		if at < 0 {
			return n, err
		}
		if i += at; !l.lineFeedNext(p[i+1 : n]) {
			p[i] = '\n'
		}
	}
}

// lineFeedNext reports whether the next byte is a line feed: the first byte of rest or, if
// rest is empty, the next byte of the file.
func (l *lineEnds) lineFeedNext(rest []byte) bool {
	if len(rest) == 0 {
		rest, _ = l.in.Peek(1)
	}
	return len(rest) > 0 && rest[0] == '\n'
}

// textError makes the errors of a damaged .gz file wrap ErrFormat.
func textError(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.As(err, &corrupt) {
		return fmt.Errorf("%w: %w", err, ErrFormat)
	}
	return err
}

// pathError adds the name of the file to an error that does not have it.
func pathError(name string, err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}
