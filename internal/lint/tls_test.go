package lint

import (
	"go/ast"
	"testing"
)

// certsPackage makes every configuration of TLS.
const certsPackage = "internal/certs"

// TestOneTLSConfig: no other package makes a configuration of TLS, or dials and listens with one.
func TestOneTLSConfig(t *testing.T) {
	forbidden := map[string]bool{"Config": true, "Dial": true, "DialWithDialer": true, "Dialer": true, "Client": true,
		"Server": true, "Listen": true, "NewListener": true}
	found := 0
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !forbidden[sel.Sel.Name] {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); !ok || x.Name != "tls" {
				return true
			}
			if found++; s.dir() != certsPackage {
				t.Errorf("%s:%d: tls.%s is used outside of %s", s.name, s.line(n.Pos()), sel.Sel.Name, certsPackage)
			}
			return true
		})
	}
	if found < 4 {
		t.Errorf("only %d uses of TLS: this looks at the wrong files", found)
	}
}
