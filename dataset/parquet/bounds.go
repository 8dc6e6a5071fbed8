package parquet

import (
	"errors"
	"fmt"
)

// ErrFormat is wrapped by errors about damaged files and about files of another format.
var ErrFormat = errors.New("the file is damaged or has another format")

func errDamaged(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrFormat)
}

// Bounds of files.
const (
	// maxColumns bounds the columns of a file, lists counted by their items.
	maxColumns = 1 << 20
	// maxValues is how many values a file may have for each of its bytes, if they are more than freeValues. Runs of
	// equal values take hardly any bytes, but time.
	maxValues  = 1024
	freeValues = 1 << 26
	// Pages that are in memory may have freeUnpacked bytes together, or maxRatio times the bytes of the file.
	freeUnpacked = 64 << 20
	maxRatio     = 200
	// maxText bounds one text, in bytes.
	maxText = 1 << 16
	// maxLeading bounds the missing lists before the first one.
	maxLeading = 1 << 20
	// maxList bounds the items of a list.
	maxList = 1 << 16
	// maxPageHeader bounds the header of a page, in bytes.
	maxPageHeader = 1 << 24
)

// batch is how many values are decoded at a time.
const batch = 512

// maxBatchText bounds the texts of a batch, in bytes.
const maxBatchText = 8 << 20

var errTooLong = fmt.Errorf("a text has more than %d bytes, or the texts of %d rows more than %d: %w", maxText, batch,
	maxBatchText, ErrFormat)
