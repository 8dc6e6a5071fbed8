package experiment

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// MaxRecord bounds a line of the records, in bytes.
const MaxRecord = 16 << 20

// Record is what is known of a run that ended.
type Record struct {
	Key     string
	Seconds float64 // of computing
	// Attempts is how often the run has ended, in all records of a folder or all jobs of a cluster. It is not recorded.
	Attempts int
	// Outcome is the outcome of the run without the model. It has the learning curve and the predictions if these are
	// recorded.
	Outcome *pipeline.Outcome
}

// recordJSON is a Record as files have it, with what is recorded beside the outcome, encoded.
type recordJSON struct {
	Key         string            `json:"key"`
	Seconds     float64           `json:"seconds,omitempty"`
	Outcome     *pipeline.Outcome `json:"result"`
	Curve       []byte            `json:"curve,omitempty"`
	Predictions []byte            `json:"predictions,omitempty"`
}

// Lacks reports whether a run that ended well has not what is recorded.
func (r *Record) Lacks(of *Recorded) bool {
	return r.Outcome.Error == "" && (of.Curve && r.Outcome.Curve == nil || of.Predictions && len(r.Outcome.Predictions) == 0)
}

// BetterThan reports whether a record counts instead of an earlier record of the same run: if the earlier one failed or
// has less.
func (r *Record) BetterThan(before *Record) bool {
	return before == nil || r.content().betterThan(before.content())
}

// content says what a record has of a run.
type content struct{ failed, curve, predictions bool }

func (r *Record) content() content {
	return content{r.Outcome.Error != "", r.Outcome.Curve != nil, len(r.Outcome.Predictions) > 0}
}

func (c content) betterThan(before content) bool {
	has := func(a, b content) bool { return (a.curve || !b.curve) && (a.predictions || !b.predictions) }
	return before.failed || !c.failed && has(c, before) && !has(before, c)
}

// SetRecorded sets the learning curve and the predictions from their encodings, which may be empty.
func (r *Record) SetRecorded(line, predicted []byte) error {
	r.Outcome.Predictions = predicted
	if len(line) == 0 {
		return nil
	}
	c, err := curve.Decode(line)
	if err != nil {
		return err
	}
	r.Outcome.Curve = c
	return nil
}

// readRecords reads records up to the end of the last whole one. A later record of a run replaces an earlier
// one: it was run again. Damaged are the numbers of lines between records that cannot be read: their runs
// have no record. What cannot be read behind the last record is the end of a crash.
func readRecords(in io.Reader) (records map[string]*Record, end int64, damaged []int, err error) {
	records = make(map[string]*Record)
	r := bufio.NewReaderSize(in, 64<<10)
	var unread []int // since the last record
	at := int64(0)
	for number := 1; ; number++ {
		line, size, err := readLine(r)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, 0, nil, fmt.Errorf("line %d: %w", number, err)
		}
		at += size
		record, err := decodeRecord(line)
		if err != nil {
			unread = append(unread, number)
			continue
		}
		if before := records[record.Key]; before != nil {
			record.Attempts += before.Attempts
		}
		records[record.Key] = record
		damaged, unread, end = append(damaged, unread...), nil, at
	}
	if len(records) > 0 && len(unread) > 1 { // a crash leaves one
		damaged = append(damaged, unread[:len(unread)-1]...)
	}
	if len(records) == 0 && len(unread) > 1 {
		return nil, 0, nil, fmt.Errorf("%w: none of the %d lines is a record of a run; move the file away to repeat the runs", ErrFolder, len(unread))
	}
	return records, end, damaged, nil
}

// readLine reads a line, which it returns without its end, and with at most MaxRecord bytes; size counts all of
// its bytes. The error is io.EOF if the rest has no end of a line.
func readLine(r *bufio.Reader) (line []byte, size int64, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		size += int64(len(piece))
		if len(line) <= MaxRecord {
			line = append(line, piece...)
		}
		switch {
		case err == nil:
			return line[:len(line)-1], size, nil
		case err != bufio.ErrBufferFull:
			return nil, size, err
		}
	}
}

// sumLength is the length of a CRC-32 in hex and a space. Each line begins with them.
const sumLength = 9

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encodeRecord(r *Record) ([]byte, error) {
	v := recordJSON{Key: r.Key, Seconds: r.Seconds, Outcome: r.Outcome, Predictions: r.Outcome.Predictions}
	if r.Outcome.Curve != nil {
		v.Curve = r.Outcome.Curve.Append(nil)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(b, castagnoli), b), nil
}

func decodeRecord(line []byte) (*Record, error) {
	if len(line) < sumLength || line[sumLength-1] != ' ' {
		return nil, fmt.Errorf("%w: a line does not begin with a checksum", ErrFolder)
	}
	want, err := strconv.ParseUint(string(line[:sumLength-1]), 16, 32)
	if err != nil || uint32(want) != crc32.Checksum(line[sumLength:], castagnoli) {
		return nil, fmt.Errorf("%w: the checksum at the beginning of a line does not match the line", ErrFolder)
	}
	var v recordJSON
	d := json.NewDecoder(bytes.NewReader(line[sumLength:]))
	d.DisallowUnknownFields() // a record of another version: what it says would be lost
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	r := &Record{Key: v.Key, Seconds: v.Seconds, Attempts: 1, Outcome: v.Outcome}
	if r.Outcome == nil || len(r.Key) != 64 || !(r.Seconds >= 0) {
		return nil, fmt.Errorf("%w: a record has no key, no result or no valid time", ErrFolder)
	}
	if err := r.SetRecorded(v.Curve, v.Predictions); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return r, nil
}
