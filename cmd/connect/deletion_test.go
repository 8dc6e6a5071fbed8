package connect

import (
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
)

// A deletion says how much room it makes on the disks, and when: what other jobs need as well stays.
func TestWhatIsFreed(t *testing.T) {
	t.Parallel()
	const when = " on the disk of each coordinator within seconds if the files are older than 60 minutes, and otherwise " +
		"when they reach that age"
	jobs := []protocol.DeletedJob{{ID: 1, Bytes: 1 << 20}, {ID: 2, Bytes: 1 << 20}}
	for _, test := range []struct {
		d    protocol.Deletion
		want string
	}{
		{protocol.Deletion{Jobs: jobs, Frees: 2 << 20}, "this frees 2.0 MiB" + when},
		{protocol.Deletion{Jobs: jobs, Frees: 3 << 20, DryRun: true}, "this would free 3.0 MiB" + when},
		{protocol.Deletion{Jobs: jobs, Frees: 1 << 20}, "this frees 1.0 MiB (other jobs need the rest)" + when},
		{protocol.Deletion{Jobs: jobs}, "this frees no disk space: other jobs need the same models and predictions"},
		{protocol.Deletion{Jobs: []protocol.DeletedJob{{ID: 1}}}, "this frees no disk space"},
		{protocol.Deletion{Jobs: []protocol.DeletedJob{{ID: 1}}, DryRun: true}, "this would free no disk space"},
	} {
		if got := Freed(&test.d); got != test.want {
			t.Errorf("%+v: %q, want %q", test.d, got, test.want)
		}
	}
}
