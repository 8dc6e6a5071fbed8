package connect

import (
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client/outage"
	"github.com/coppice-ldl/coppice/protocol"
)

func TestWithPort(t *testing.T) {
	for text, want := range map[string]string{
		"host1": "host1:7100", "10.0.0.1": "10.0.0.1:7100", "host1:80": "host1:80", "[::1]": "[::1]:7100",
		"[::1]:9": "[::1]:9",
		"::1":     "::1", "7100": "7100", "": "", "http://host1": "http://host1", "host1:": "host1:", "a/b": "a/b",
	} {
		if got := WithPort(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// What the coordinators said explains an error for some seconds; of a command that fails
// long after, they are asked anew.
func TestOldAnswersExplainNothing(t *testing.T) {
	now, surveys := time.Unix(1000, 0), 0
	l := &looks{survey: func() *outage.Outlook {
		surveys++
		return &outage.Outlook{Voters: surveys}
	}, now: func() time.Time { return now }}
	for _, test := range []struct {
		later time.Duration
		want  int // the survey that explains
	}{{0, 1}, {protocol.ClientRead - lookAfter, 1}, {time.Minute, 2}, {time.Second, 2}} {
		now = now.Add(test.later)
		if o := l.look(); o.Voters != test.want {
			t.Errorf("%v later survey %d explains, want %d", test.later, o.Voters, test.want)
		}
	}
}
