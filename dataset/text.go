package dataset

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// openText opens a text file, unpacks it where its name ends in .gz, and passes
// over a byte order mark.
func openText(path string) (*bufio.Reader, io.Closer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	var in io.Reader = f
	if strings.HasSuffix(strings.ToLower(path), ".gz") {
		z, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<16))
		if err != nil {
			f.Close()
			return nil, nil, fmt.Errorf("%s: %w", path, textError(err))
		}
		in = z
	}
	b := bufio.NewReaderSize(in, 1<<16)
	if mark, err := b.Peek(3); err == nil && string(mark) == "\ufeff" {
		b.Discard(3)
	}
	return b, f, nil
}

// textError marks what a damaged .gz file gives as ErrFormat.
func textError(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.As(err, &corrupt) {
		return fmt.Errorf("%w: %w", err, ErrFormat)
	}
	return err
}

// parseNumber reads a decimal number; reason says why it is none.
func parseNumber(field string) (v float64, reason string) {
	field = strings.TrimSpace(field)
	if field == "" {
		return 0, "is empty where a number is due"
	}
	v, err := strconv.ParseFloat(field, 64)
	switch {
	case err == nil:
		return v, ""
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Sprintf("%.40s does not fit in a float32", field)
	}
	return 0, fmt.Sprintf("%.40q is not a number", field)
}

func isNumber(field string) bool {
	_, reason := parseNumber(field)
	return reason == ""
}
