package ldlf

import "github.com/coppice-ldl/coppice/internal/num"

// Up to maxAbreast rows go through the trees at once: as many as have no more than
// abreastValues values together, which a processor's cache holds. Fewer than fewRows
// are faster one after the other, as all rows of forests too large for more are, whose
// outputs are computed for minAbreast rows at once. How many changes no bits.
const (
	maxAbreast    = 64
	fewRows       = 10
	minAbreast    = 8
	abreastValues = 1 << 16
)

// abreast takes rows through the trees side by side: each of its matrices has a row
// for what one value is in all samples, so that the arithmetic of a split node or a leaf
// is on whole vectors. A sample's bits are those that it has alone.
type abreast struct {
	outputs, labels, leaves int

	width int // the most samples at once
	n     int // samples now

	f, s, t, df []float32 // outputs×n: f, σ(f), σ(-f), ∂R/∂f
	d, g, r     []float32 // labels×n: degrees, predictions, their ratios
	node, mass  []float32 // nodes×n, of one tree
	kl, loss    []float64 // n: the K-L of one tree, and summed over trees
}

// newAbreast returns what takes rows through forests of sizes z. Its memory is made
// when it is needed first: validation and prediction do without.
func newAbreast(z *sizes) abreast {
	each := 2*z.nodes() + 4*z.outputs + 3*z.labels
	w := maxAbreast
	for w > minAbreast && w*each > abreastValues {
		w /= 2
	}
	return abreast{outputs: z.outputs, labels: z.labels, leaves: z.leaves, width: w}
}

func (a *abreast) make(nodes int) {
	for _, m := range []*[]float32{&a.f, &a.s, &a.t, &a.df} {
		*m = make([]float32, a.outputs*a.width)
	}
	for _, m := range []*[]float32{&a.d, &a.g, &a.r} {
		*m = make([]float32, a.labels*a.width)
	}
	a.node, a.mass = make([]float32, nodes*a.width), make([]float32, nodes*a.width)
	a.kl, a.loss = make([]float64, a.width), make([]float64, a.width)
}

// row returns row i of one of a's matrices.
func (a *abreast) row(m []float32, i int) []float32 { return m[i*a.n : (i+1)*a.n : (i+1)*a.n] }

// begin takes samples up with their outputs f (len(samples)×outputs).
func (a *abreast) begin(samples []sample, f []float32) {
	if a.f == nil {
		a.make(2*a.leaves - 1)
	}
	a.n = len(samples)
	for i := range samples {
		for j, y := range f[i*a.outputs : (i+1)*a.outputs] {
			a.f[j*a.n+i] = y
		}
		for c, y := range samples[i].d {
			a.d[c*a.n+i] = y
		}
	}
	units := a.outputs * a.n
	num.SigmoidPairs(a.s[:units], a.t[:units], a.f[:units])
	clear(a.df)
	clear(a.loss)
}

// tree adds one tree's ∂R/∂f (without the 1/N) and K-L; q is leaves×labels, and qT its
// transpose.
func (a *abreast) tree(phi []uint32, q, qT []float32) {
	a.reach(phi)
	splits := len(phi)
	p, mass := a.node[splits*a.n:(splits+a.leaves)*a.n], a.mass[splits*a.n:]
	a.predict(p, qT)
	a.ratios()
	a.leafMass(mass, p, q)
	a.splitGradients(phi)
}

// reach is the function reach for all samples (Eq. 1).
func (a *abreast) reach(phi []uint32) {
	root := a.row(a.node, 0)
	for i := range root {
		root[i] = 1
	}
	for n, unit := range phi {
		u := int(unit)
		num.Branch(a.row(a.node, 2*n+1), a.row(a.node, 2*n+2), a.row(a.node, n), a.row(a.s, u), a.row(a.t, u))
	}
}

// predict is the function predict for all samples (Eq. 2).
func (a *abreast) predict(p, qT []float32) {
	for c := range a.labels {
		g := a.row(a.g, c)
		clear(g)
		num.MulAddRows(g, qT[c*a.leaves:(c+1)*a.leaves], p)
	}
}

// ratios is the function ratios for all samples, each of weight 1.
func (a *abreast) ratios() {
	kl := a.kl[:a.n]
	clear(kl)
	for c := range a.labels {
		num.Ratios(a.row(a.r, c), kl, a.row(a.d, c), a.row(a.g, c), 1, gFloor)
	}
	num.Add64(a.loss[:a.n], kl)
}

// leafMass is the function leafMass for all samples (Eq. 8).
func (a *abreast) leafMass(mass, p, q []float32) {
	for l := range a.leaves {
		m := a.row(mass, l)
		clear(m)
		num.MulAddRows(m, q[l*a.labels:(l+1)*a.labels], a.r[:a.labels*a.n])
		num.Mul32(m, a.row(p, l))
	}
}

// splitGradients is the function splitGradients for all samples (Eq. 6).
func (a *abreast) splitGradients(phi []uint32) {
	for n := len(phi) - 1; n >= 0; n-- {
		u := int(phi[n])
		num.Join(a.row(a.df, u), a.row(a.mass, n), a.row(a.mass, 2*n+1), a.row(a.mass, 2*n+2), a.row(a.s, u), a.row(a.t, u))
	}
}

// end sets df (samples×outputs) to the samples' ∂R/∂f and appends to losses their K-L
// summed over trees.
func (a *abreast) end(df []float32, losses []float64) []float64 {
	for i := range a.n {
		row := df[i*a.outputs : (i+1)*a.outputs]
		for j := range row {
			row[j] = a.df[j*a.n+i]
		}
	}
	return append(losses, a.loss[:a.n]...)
}
