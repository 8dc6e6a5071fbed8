package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// End is how a run ended.
type End struct {
	Seconds float64 // of computing
	Error   string  // why it failed, cut by protocol.Brief; empty: it did not
}

// Ends has how the runs of a folder have ended, without their outcomes. Another process may write the folder: Update
// reads what is new.
type Ends struct {
	ByKey   map[string]End
	Damaged []int // as in Folder

	at      int64       // of the first byte that was not read
	lines   int         // that were read
	unread  []int       // lines since the last record that cannot be read
	file    os.FileInfo // that was read; nil: none
	records int
	errors  map[string]string // each once: many runs fail for the same reason
}

// Update reads the records that were written to a folder since the last call.
func (e *Ends) Update(ctx context.Context, dir string) error {
	in, err := openFile(dir, runsFile)
	if errors.Is(err, fs.ErrNotExist) {
		*e = Ends{ByKey: make(map[string]End), errors: make(map[string]string)}
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if e.file == nil || !os.SameFile(e.file, info) || info.Size() < e.at {
		*e = Ends{ByKey: make(map[string]End), errors: make(map[string]string)}
	}
	e.file = info
	if _, err := in.Seek(e.at, io.SeekStart); err != nil {
		return err
	}
	first, whole := e.lines, 0
	end, err := eachWholeLine(ctx, in, func(line []byte, _ int64) {
		whole++
		key, run, ok := decodeEnd(line)
		if !ok {
			e.unread = append(e.unread, first+whole)
			return
		}
		if run.Error != "" {
			if e.errors[run.Error] == "" {
				e.errors[run.Error] = run.Error
			}
			run.Error = e.errors[run.Error]
		}
		e.ByKey[key] = run
		e.records++
		e.Damaged, e.unread = append(e.Damaged, e.unread...), nil
	})
	e.at, e.lines = e.at+end, first+whole
	if err != nil {
		return fmt.Errorf("%s: %w", in.Name(), err)
	}
	if e.records == 0 && len(e.unread) > 1 {
		return fmt.Errorf("%s: %w", in.Name(), noRecord(len(e.unread)))
	}
	return nil
}

// decodeEnd reads how a run ended from the line of its record. A line as encodeRecord writes it is not decoded, which
// would take most of the time.
func decodeEnd(line []byte) (key string, end End, ok bool) {
	const before, between, after = `{"key":"`, `,"seconds":`, `,"result":{`
	if len(line) > sumLength+len(before)+64 && line[sumLength-1] == ' ' && !bytes.Contains(line, []byte(`"error":"`)) {
		want, err := strconv.ParseUint(string(line[:sumLength-1]), 16, 32)
		if err != nil || uint32(want) != crc32.Checksum(line[sumLength:], castagnoli) {
			return "", end, false
		}
		rest, ok := bytes.CutPrefix(line[sumLength:], []byte(before))
		if ok && len(rest) > 65 && rest[64] == '"' {
			text := rest[65:]
			if timed, has := bytes.CutPrefix(text, []byte(between)); has {
				number, _, _ := bytes.Cut(timed, []byte(","))
				text = timed[len(number):]
				end.Seconds, err = strconv.ParseFloat(string(number), 64)
			}
			if bytes.HasPrefix(text, []byte(after)) && err == nil && end.Seconds >= 0 {
				return string(rest[:64]), end, true
			}
		}
	}
	r, err := decodeRecord(line)
	if err != nil {
		return "", End{}, false
	}
	return r.Key, End{r.Seconds, protocol.Brief(r.Outcome.Error)}, true
}

// Working says which runs of a folder a process computes now: for each key, since when, in Unix seconds. works is
// false if no process has the folder open to write to. Nothing in the folder is locked or changed.
func Working(dir string, now time.Time) (running map[string]float64, works bool) {
	f, err := openFile(dir, lockFile)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 || now.Sub(info.ModTime()) > worksKept {
		return nil, false
	}
	var v worksJSON
	b, err := io.ReadAll(io.LimitReader(f, maxWorks))
	if err != nil || json.Unmarshal(b, &v) != nil {
		return nil, true // it is being written
	}
	return v.Running, true
}
