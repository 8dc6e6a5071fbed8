package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/coppice-ldl/coppice/harness/chaos/system"
	"github.com/coppice-ldl/coppice/internal/tempdir"
)

// A small disk is an ext4 in a file, on a loop device. It can be shut down: from then on every
// read, write and sync is an input/output error, until it is unmounted and mounted again. Data
// that was not synced is gone.

// diskBytes is the size of a small disk: a log of allocated files, snapshots and
// blobs leave room on it.
const diskBytes = 256 << 20

// newDisk makes a small disk in a file and mounts it at a folder.
func newDisk(image, dir string) error {
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(image, diskBytes); err != nil {
		return err
	}
	if err := mountTool("mkfs.ext4", "-q", "-F", "-m", "0", "-N", "8192", image); err != nil {
		return err
	}
	return mountDisk(image, dir)
}

// mountDisk mounts what is in a file. Blocks that are free again take no memory.
func mountDisk(image, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return mountTool("mount", "-t", "ext4", "-o", "loop,discard", image, dir)
}

func unmountDisk(dir string) error { return mountTool("umount", dir) }

// noDisks says why there can be no small disks here; empty: there can be.
func noDisks() string {
	if err := tryDisk(); err != nil {
		return "an ext4 file system on a loop device cannot be made (only root on Linux can, with mkfs.ext4): " + err.Error()
	}
	return ""
}

// tryDisk makes a small disk, shuts it down, and removes it.
func tryDisk() (err error) {
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		return err
	}
	dir, err := tempdir.Kept("chaos-disk")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	disk := filepath.Join(dir, "disk")
	if err := newDisk(filepath.Join(dir, "image"), disk); err != nil {
		return err
	}
	return errors.Join(system.ShutDown(disk), unmountDisk(disk))
}

// mountTool runs a command that makes or mounts file systems.
func mountTool(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.Join(strings.Fields(string(out)), " "))
	}
	return nil
}
