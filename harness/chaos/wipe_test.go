package chaos

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// Outages follow from the seed; the first deletes no folder, some delete one, and times are
// within their bounds.
func TestNewOutages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		list, again := newOutages(rand.New(rand.NewPCG(seed, 0)), coordinators), newOutages(rand.New(rand.NewPCG(seed, 0)),
			coordinators)
		if !reflect.DeepEqual(list, again) {
			t.Fatalf("one seed gave %+v and %+v", list, again)
		}
		wiped := 0
		for _, o := range list {
			if o.wiped {
				wiped++
			}
			sorted := slices.Sorted(slices.Values(o.which))
			if len(sorted) == 0 || len(slices.Compact(sorted)) != len(o.which) || sorted[0] < 0 ||
				sorted[len(sorted)-1] >= coordinators {
				t.Fatalf("kills %v", o.which)
			}
			if o.away >= mostAway || o.pause >= earlyKill || len(o.early) > mostAgain || len(o.early) > 0 &&
				slices.Max(o.early) >= earlyKill {
				t.Fatalf("%+v", o)
			}
		}
		if len(list) != kills+wipes || wiped != wipes || list[0].wiped {
			t.Fatalf("%d outages, %d wipes: %+v", len(list), wiped, list)
		}
	})
}

// fakeServer answers as told, with a status and a text.
func fakeServer(t *testing.T, answer func() (int, string)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status, text := answer()
		w.WriteHeader(status)
		w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// All have to be ready in one look: two that are in turns are not.
func TestAllReady(t *testing.T) {
	r := &rig{looks: proc.NewObserver(nil, &http.Transport{})}
	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	var asked, both atomic.Int64
	inTurns := func() (int, string) {
		n := asked.Add(1)
		if n > 12 {
			cancel()
		}
		if both.Load() != 0 || n%3 == 0 {
			return http.StatusOK, "ready"
		}
		return http.StatusServiceUnavailable, "an election"
	}
	servers := []string{fakeServer(t, inTurns), fakeServer(t, inTurns)}
	if err := r.allReady(ctx, servers); err == nil || !strings.Contains(err.Error(), "503: an election") {
		t.Errorf("ready in turns: %v", err)
	}
	both.Store(1)
	if err := r.allReady(testkit.Context(t), servers); err != nil {
		t.Error(err)
	}
}
