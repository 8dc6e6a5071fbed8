package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/raft-wal/types"
)

// metaName is the file in the log's folder that lists its segments: one line of
// JSON after its checksum.
const metaName = "META"

// meta implements types.MetaStore with a small file that is replaced whole.
type meta struct{ path string }

// Load implements types.MetaStore.
func (m *meta) Load(string) (types.PersistentState, error) {
	var state types.PersistentState
	b, err := os.ReadFile(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return state, nil
	}
	if err != nil {
		return state, fmt.Errorf("store: %w", err)
	}
	sum, text, _ := strings.Cut(string(b), " ")
	if want := checksum(text); sum != want {
		return state, corrupted(m.path, fmt.Errorf("it has the checksum %s, its first word is %.8q", want, sum))
	}
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		return state, corrupted(m.path, err)
	}
	return state, nil
}

// CommitState implements types.MetaStore.
func (m *meta) CommitState(state types.PersistentState) error {
	b, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	text := string(b) + "\n"
	return replaceFile(m.path, checksum(text)+" "+text)
}

func checksum(text string) string {
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(text), castagnoli))
}

// replaceFile makes a file's contents text, whole or not at all.
func replaceFile(path, text string) error {
	temporary := path + ".tmp"
	if err := writeSynced(temporary, text); err != nil {
		_ = os.Remove(temporary) // it takes room that is needed
		return fmt.Errorf("store: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return syncFolder(filepath.Dir(path))
}

// GetStable implements types.MetaStore; Raft's stable store is another.
func (m *meta) GetStable([]byte) ([]byte, error) { return nil, nil }

// SetStable implements types.MetaStore.
func (m *meta) SetStable(key, _ []byte) error {
	panic("store: " + strconv.Quote(string(key)) + " is kept in the log's folder")
}

// Close implements types.MetaStore.
func (m *meta) Close() error { return nil }
