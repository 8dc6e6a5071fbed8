package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/internal/files"
)

// The names in a folder.
const (
	lockName      = "LOCK"
	formatName    = "FORMAT" // what the folder is; FORMAT.copy is its copy
	formatCopy    = "FORMAT.copy"
	stableName    = "VOTE"
	ackedName     = "ACKED"
	logName       = "log"
	snapshotsName = "snapshots" // Raft makes it
	seedName      = "SEED"
	corruptName   = "corrupt"
	probeName     = "PROBE"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the CRC-32C of a text in hexadecimal.
func checksum(text string) string {
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(text), castagnoli))
}

// passes reports whether an error of the disk ends if somebody makes room.
func passes(err error) bool {
	return isAny(err, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EMFILE, syscall.ENFILE)
}

func isAny(err error, list ...syscall.Errno) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// corrupted returns an error that wraps ErrCorrupt and names the file. If why says only
// that the file cannot be read at the moment, the error does not wrap ErrCorrupt: a file
// that may be intact is not set aside, and other coordinators may have the same trouble.
func corrupted(path string, why error) error {
	if passes(why) || isAny(why, syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOMEM, syscall.EAGAIN, syscall.EBUSY) {
		return fmt.Errorf("store: %s: %w", path, why)
	}
	return fmt.Errorf("store: %w: %s: %w", ErrCorrupt, path, why)
}

// replaceFile writes a small file of the folder; see files.Replace.
func replaceFile(path, text string) error {
	if err := files.Replace(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

func syncFolder(path string) error {
	if err := files.SyncFolder(path); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// hasRoom reports whether the disk of a folder takes so many bytes, by its own account and
// by a small file.
func hasRoom(folder string, bytes uint64) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return false
	}
	if st.Blocks > 0 && st.Bavail*uint64(st.Bsize) < bytes {
		return false
	}
	probe := filepath.Join(folder, probeName+".tmp")
	defer os.Remove(probe)
	return files.WriteSynced(probe, make([]byte, 64<<10), 0o600) == nil
}
