package connect

import (
	"fmt"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// SharedFlag says who may read what a command makes on a cluster.
type SharedFlag struct {
	Shared bool `group:"cluster" help:"Let all users of the cluster read what this command makes there (default: only you and admins)."`
}

// NoteNotShared says that --shared has changed nothing, since what it is about existed before and is private. kind is dataset,
// job or experiment.
func NoteNotShared(a *cli.App, kind, name string) {
	a.Note("note: %s %s was there before and is private; to share it: %s", kind, name, a.Command(kind+" share "+name))
}

// Freed says how much disk space a deletion frees, and when.
func Freed(d *protocol.Deletion) string {
	var bytes uint64
	for i := range d.Jobs {
		bytes += d.Jobs[i].Bytes
	}
	does := "this frees"
	if d.DryRun {
		does = "this would free"
	}
	switch {
	case d.Frees == 0 && bytes == 0:
		return does + " no disk space"
	case d.Frees == 0:
		return does + " no disk space: other jobs need the same models and predictions"
	}
	rest := ""
	if d.Frees < bytes {
		rest = " (other jobs need the rest)"
	}
	return fmt.Sprintf("%s %s%s on the disk of each coordinator %s", does, units.Format(int64(d.Frees)), rest, whenFreed())
}

// whenFreed says when the space of deleted data is free.
func whenFreed() string {
	return fmt.Sprintf("within seconds if the files are older than %.0f minutes, and otherwise when they reach that age", protocol.BlobGrace.Minutes())
}

// FreedLater is Freed for a deletion that does not know how much it frees.
func FreedLater() string {
	return "data that nothing else needs are deleted from the disks " + whenFreed()
}
