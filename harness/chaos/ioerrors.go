package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/coppice-ldl/coppice/harness/chaos/system"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/tempdir"
	"github.com/coppice-ldl/coppice/internal/wait"
)

// A block disk is an ext4 in a file, on a loop device. Unlike a file system in memory it can
// be shut down: from then on every read, write and sync is an input/output error, and what
// was not synced is gone, until it is unmounted and mounted again.

// newBlockDisk makes a block disk in a file and mounts it at a folder.
func newBlockDisk(image, dir string) error {
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(image, diskBytes); err != nil {
		return err
	}
	if err := mountTool("mkfs.ext4", "-q", "-F", "-m", "0", "-N", "8192", image); err != nil {
		return err
	}
	return mountBlockDisk(image, dir)
}

// mountBlockDisk mounts what is in a file. Blocks that are free again take no memory.
func mountBlockDisk(image, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return mountTool("mount", "-t", "ext4", "-o", "loop,discard", image, dir)
}

// noBlockDisks says why there can be no input/output errors here; empty: there can be.
func noBlockDisks(*Config) string {
	if err := tryBlockDisk(); err != nil {
		return "an ext4 file system on a loop device cannot be made (only root on Linux can, with mkfs.ext4): " + err.Error()
	}
	return ""
}

// tryBlockDisk makes a block disk, shuts it down, and removes it.
func tryBlockDisk() (err error) {
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		return err
	}
	dir, err := tempdir.Kept("chaos-disk")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	disk := filepath.Join(dir, "disk")
	if err := newBlockDisk(filepath.Join(dir, "image"), disk); err != nil {
		return err
	}
	return errors.Join(system.ShutDown(disk), unmountDisk(disk))
}

// ioErrors shuts the disk of a coordinator, the leader among them, or of a worker down.
// What is imported meanwhile must be acknowledged, and be there later; the process is
// started again once its disk is well.
func ioErrors(_ context.Context, s *strike) (func(context.Context) error, error) {
	n := pick(s, []*proc.Node{s.leader, s.follower(), s.worker()})
	name := fmt.Sprintf("beside-%08x", s.rng.Uint32())
	away := s.between(leastAlone, mostAlone)
	s.on(n)
	return func(ctx context.Context) error {
		if err := wait.For(ctx, away); err != nil {
			return err
		}
		if err := s.keep(ctx, name, 64); err != nil {
			return fmt.Errorf("the disk of %s has errors: %w", n.Name, err)
		}
		if err := errors.Join(n.Kill(), s.mendDisk(n), n.Restart()); err != nil {
			return err
		}
		return s.kept(ctx, name)
	}, system.ShutDown(n.Dir)
}

// mendDisk mounts the disk of a process again, which must not run.
func (r *rig) mendDisk(n *proc.Node) error {
	if err := unmountDisk(n.Dir); err != nil {
		return err
	}
	return mountBlockDisk(r.image(n.Name), n.Dir)
}

// image returns the file that the block disk of a process is in.
func (r *rig) image(name string) string { return filepath.Join(r.dir, imagesDir, name) }

// imagesDir is where the files of block disks are: in memory.
const imagesDir = "images"

// mountBlockDisks gives processes a block disk each.
func (r *rig) mountBlockDisks(names []string) error {
	images := filepath.Join(r.dir, imagesDir)
	if err := mountMemory(images, int64(len(names)+1)*diskBytes); err != nil {
		return err
	}
	r.mounted = append(r.mounted, images)
	for _, name := range names {
		dir := filepath.Join(r.dir, name)
		if err := newBlockDisk(r.image(name), dir); err != nil {
			return err
		}
		r.mounted = append(r.mounted, dir)
	}
	return nil
}

// mountTool runs a command that makes or mounts file systems.
func mountTool(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.Join(strings.Fields(string(out)), " "))
	}
	return nil
}
