package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft-wal/types"
)

// The files in the log's folder that list its segments: one line of JSON after its checksum.
// The second is for when the first is damaged, and is written before it.
const (
	metaName = "META"
	metaCopy = ".copy" // at the end of its name
)

// meta implements types.MetaStore with two small files that are replaced whole.
type meta struct {
	path string
	log  hclog.Logger
}

// Load implements types.MetaStore. The copy is never behind the list, and before it only if a
// crash came in between: then nothing has been done of what it says more, as where a crash
// comes right after the list is written.
func (m *meta) Load(string) (types.PersistentState, error) {
	text, state, err := readMeta(m.path)
	other, mended, copyErr := readMeta(m.path + metaCopy)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil && other == text:
		return state, nil
	case err == nil:
		return state, replaceFile(m.path+metaCopy, text)
	case missing && errors.Is(copyErr, fs.ErrNotExist):
		return types.PersistentState{}, nil
	case copyErr == nil && (missing || errors.Is(err, ErrCorrupt)):
		m.log.Error("the list of the log's files is missing or damaged, and is written again from its copy", "error", err)
		return mended, replaceFile(m.path, other)
	case missing:
		err = copyErr
	}
	return types.PersistentState{}, err
}

// readMeta reads one of the files, and returns its text as well.
func readMeta(path string) (all string, state types.PersistentState, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", state, fmt.Errorf("store: %w", err)
	}
	sum, text, _ := strings.Cut(string(b), " ")
	if want := checksum(text); sum != want {
		return "", state, corrupted(path, fmt.Errorf("the checksum is %s, but the file says %.8q", want, sum))
	}
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		return "", state, corrupted(path, err)
	}
	return string(b), state, nil
}

// CommitState implements types.MetaStore.
func (m *meta) CommitState(state types.PersistentState) error {
	b, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	text := string(b) + "\n"
	text = checksum(text) + " " + text
	if err := replaceFile(m.path+metaCopy, text); err != nil {
		return err
	}
	return replaceFile(m.path, text)
}

func checksum(text string) string {
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(text), castagnoli))
}

// GetStable implements types.MetaStore; Raft's stable store is another.
func (m *meta) GetStable([]byte) ([]byte, error) { return nil, nil }

// SetStable implements types.MetaStore.
func (m *meta) SetStable(key, _ []byte) error {
	panic("store: " + strconv.Quote(string(key)) + " is kept in the log's folder")
}

// Close implements types.MetaStore.
func (m *meta) Close() error { return nil }
