package lint

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/internal/num/nofuse"
)

// impure are the packages that a function of its inputs alone has no use for.
var impure = []string{"time", "math/rand", "math/rand/v2", "crypto/rand", "net", "net/http", "os/exec"}

// deterministic families compute what reaches a digest or the Raft state: they
// have no clock, no global randomness and no network.
var deterministic = []string{"engine/round", "engine/outcome", "algorithms", "job/pipeline", "dataset", "internal/num",
	"coordinator/state"}

func TestDeterministicPackagesHaveNoClock(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || !in(s.dir(), deterministic...) || in(s.dir(), "internal/num/nofuse") {
			continue
		}
		for _, p := range s.imports() {
			if slices.Contains(impure, p) {
				t.Errorf("%s imports %s", s.name, p)
			}
		}
	}
}

// sequential families start no goroutine: who runs them divides the work.
var sequential = []string{"engine/round", "engine/outcome", "algorithms", "job/pipeline", "dataset"}

func TestAlgorithmsStartNoGoroutine(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || !in(s.dir(), sequential...) {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s:%d: a goroutine", s.name, s.line(n.Pos()))
			case *ast.SelectorExpr:
				if n.Sel.Name == "Go" || n.Sel.Name == "AfterFunc" {
					t.Errorf("%s:%d: %s starts a goroutine", s.name, s.line(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
}

// exact are the functions of package math that give the same bits on every
// processor, in every build mode. Constants are exact as well.
var exact = []string{
	"Sqrt", "FMA", "Floor", "Abs", "Copysign", "Signbit", "Inf", "IsInf", "NaN", "IsNaN", "Ldexp", "Nextafter",
	"Nextafter32", "Float32bits", "Float32frombits", "Float64bits", "Float64frombits",
}

// arithmetic families compute what reaches a digest or a measure; they use
// internal/num, and of package math only what is exact.
var arithmetic = []string{"algorithms", "dataset", "internal/num", "engine", "job/open", "job/pipeline", "job/local"}

func TestOnlyExactMath(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || !in(s.dir(), arithmetic...) || !slices.Contains(s.imports(), "math") {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f := mathFunction(call.Fun); f != "" && !slices.Contains(exact, f) {
				t.Errorf("%s:%d: math.%s differs between processors; use internal/num", s.name, s.line(n.Pos()), f)
			}
			return true
		})
	}
}

// What the compiler fuses would differ between processors as well: a test of nofuse compiles every
// arithmetic family.
func TestFusingIsLookedForInAllArithmetic(t *testing.T) {
	for _, family := range arithmetic {
		if !in(family, nofuse.Families...) {
			t.Errorf("nofuse does not look into %s", family)
		}
	}
	for _, family := range nofuse.Families {
		if !slices.ContainsFunc(sources(t), func(s *source) bool { return !s.test() && in(s.dir(), family) }) {
			t.Errorf("nofuse looks into %s, where no code is", family)
		}
	}
}

// mathFunction returns F of math.F, and "" for anything else.
func mathFunction(e ast.Expr) string {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); !ok || x.Name != "math" {
		return ""
	}
	return sel.Sel.Name
}

// No floating point in the replicated state machine: floats are computed by the
// leader's driver and replicated as bytes.
func TestStateMachineHasNoFloats(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || !in(s.dir(), "coordinator/state") {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			b, ok := n.(*ast.BinaryExpr)
			if !ok {
				return true
			}
			for _, x := range []ast.Expr{b.X, b.Y} {
				if isFloat(x) {
					t.Errorf("%s:%d: floating-point arithmetic in the state machine", s.name, s.line(n.Pos()))
				}
			}
			return true
		})
	}
}

// isFloat reports whether an expression is plainly a float: a literal or a
// conversion.
func isFloat(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind.String() == "FLOAT"
	case *ast.CallExpr:
		f, ok := e.Fun.(*ast.Ident)
		return ok && strings.HasPrefix(f.Name, "float")
	}
	return false
}

// TestRaceDetector: .ci/run tests each package that starts a goroutine with the race detector. Commands whose
// goroutines run in the processes of tests below harness are tested there.
func TestRaceDetector(t *testing.T) {
	_, list, _ := strings.Cut(read(t, ".ci/run"), "\nraced=(\n")
	list, _, ok := strings.Cut(list, "\n)\n")
	if !ok {
		t.Fatal(".ci/run has no list raced")
	}
	raced := strings.Fields(strings.NewReplacer("./", "", "/...", "").Replace(list))
	inProcesses := []string{"cmd/clustercmd", "cmd/experimentcmd", "cmd/jobcmd", "cmd/uicmd",
		"harness/testkit/cmdtest"}
	for _, s := range sources(t) {
		if s.test() || in(s.dir(), raced...) || in(s.dir(), inProcesses...) {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			started := false
			if ok {
				sel, ok := call.Fun.(*ast.SelectorExpr)
				started = ok && (sel.Sel.Name == "Go" || sel.Sel.Name == "AfterFunc")
			}
			if _, ok := n.(*ast.GoStmt); ok || started {
				t.Errorf("%s:%d: this starts a goroutine, but .ci/run does not test its package with the race detector", s.name,
					s.line(n.Pos()))
			}
			return true
		})
	}
}
