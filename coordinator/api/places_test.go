package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
	"pgregory.net/rapid"
)

// TestShares: whatever callers take, together they have at most the bound, one alone has at most three quarters,
// and a caller that has nothing gets something, while others take as often as they like.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(4, 500).Draw(t, "most")
		callers := rapid.IntRange(1, 4).Draw(t, "callers")
		s := newShares(most)
		of := make(map[string]int)
		for i := range rapid.IntRange(1, 2000).Draw(t, "steps") {
			who := fmt.Sprint(rapid.IntRange(1, callers).Draw(t, "who"))
			if of[who] > 0 && rapid.IntRange(0, 4).Draw(t, "give") == 0 {
				s.give(who, 1)
				of[who]--
			} else if s.take(who, 1, 0) {
				of[who]++
			}
			sum := 0
			for who, n := range of {
				if sum += n; n > max(1, 3*most/4) {
					t.Fatalf("step %d: caller %s has %d of %d", i, who, n, most)
				}
			}
			if sum != s.inUse() || sum > most {
				t.Fatalf("step %d: %d are taken of %d, inUse says %d", i, sum, most, s.inUse())
			}
		}
		for range 3 * most {
			s.take("1", 1, 0)
		}
		if most >= 8 && callers == 1 && !s.take("another", 1, 0) {
			t.Errorf("caller 1 leaves nothing: %d of %d are taken", s.inUse(), most)
		}
	})
}

// TestOneCallerLeavesRoom: while one caller has as many requests as it gets, another caller is answered.
func TestOneCallerLeavesRoom(t *testing.T) {
	release := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if access.Of(r.Context()).Name == "tom" {
			<-release
		}
	})
	g := newGuard(h, Limits{Requests: 16, Bodies: 1 << 20}, time.Minute)
	ask := func(who string) *http.Response {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/v1/jobs", nil)
		g.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Caller{Name: who, Role: rights.Submit})))
		return w.Result()
	}
	status := make(chan int, 20)
	for range cap(status) {
		go func() { status <- ask("tom").StatusCode }()
	}
	for range cap(status) - 12 { // three quarters of 16 stay
		if code := <-status; code != http.StatusServiceUnavailable {
			t.Errorf("a request beyond the share of tom: status %d", code)
		}
	}
	if answer := ask("ann"); answer.StatusCode != http.StatusOK {
		t.Errorf("ann: status %d", answer.StatusCode)
	}
	close(release)
	for range 12 {
		if code := <-status; code != http.StatusOK {
			t.Errorf("a request of tom: status %d", code)
		}
	}
	if g.active.inUse() != 0 || len(g.active.by) != 0 {
		t.Errorf("at the end: %d are taken, by %v", g.active.inUse(), g.active.by)
	}
}

// TestBodiesOfOneCaller: one body may take all room for bodies. While a caller has one, its next one may not.
func TestBodiesOfOneCaller(t *testing.T) {
	s := newShares(100)
	if !s.take("tom", 60, 0) || !s.take("tom", 35, 60) {
		t.Fatal("one body does not get the room")
	}
	if s.take("tom", 4, 0) {
		t.Error("a second body of the same caller gets the rest")
	}
	if !s.take("ann", 5, 0) || s.take("eve", 1, 0) {
		t.Error("another caller does not get the rest, or a third one gets more than there is")
	}
}
