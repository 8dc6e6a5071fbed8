package ldlf

import "testing"

// TestPhi: every tree reads distinct units, and trees differ.
func TestPhi(t *testing.T) {
	z := newSizes(&Config{Trees: 5, Depth: 7, Outputs: 64}, 3, 2)
	m := &model{sizes: z, phi: drawPhi(z, 1, false)}
	if err := m.checkPhi(); err != nil {
		t.Error(err)
	}
	if z.treePhi(m.phi, 0)[0] == z.treePhi(m.phi, 1)[0] && z.treePhi(m.phi, 0)[1] == z.treePhi(m.phi, 1)[1] {
		t.Error("two trees begin with the same units")
	}
}
