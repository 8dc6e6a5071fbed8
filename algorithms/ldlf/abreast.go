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

	s, t, df   []float32 // outputs×n: σ(f), σ(-f), ∂R/∂f
	d, g, r    []float32 // labels×n: degrees, predictions, their ratios
	node, mass []float32 // nodes×n, of one tree
	kl, loss   []float64 // n: the K-L of one tree, and summed over trees
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

// ready makes what routing and predictions need, makeGradients the rest.
func (a *abreast) ready() {
	if a.s != nil {
		return
	}
	a.s, a.t = make([]float32, a.outputs*a.width), make([]float32, a.outputs*a.width)
	a.d, a.g = make([]float32, a.labels*a.width), make([]float32, a.labels*a.width)
	a.node = make([]float32, a.nodes()*a.width)
}

func (a *abreast) makeGradients() {
	a.df, a.r = make([]float32, a.outputs*a.width), make([]float32, a.labels*a.width)
	a.mass = make([]float32, a.nodes()*a.width)
	a.kl, a.loss = make([]float64, a.width), make([]float64, a.width)
}

func (a *abreast) nodes() int { return 2*a.leaves - 1 }

// row returns row i of one of a's matrices.
func (a *abreast) row(m []float32, i int) []float32 { return m[i*a.n : (i+1)*a.n : (i+1)*a.n] }

// take takes samples up with their outputs f (len(samples)×outputs), in rows of n
// values: beyond the samples' there are outputs and degrees of 0.
func (a *abreast) take(samples []sample, f []float32, n int) {
	a.ready()
	a.n = n
	if n > len(samples) {
		clear(a.s[:a.outputs*n])
		clear(a.d[:a.labels*n])
	}
	for i := range samples {
		for j, y := range f[i*a.outputs : (i+1)*a.outputs] {
			a.s[j*n+i] = y
		}
		for c, y := range samples[i].d {
			a.d[c*n+i] = y
		}
	}
	units := a.outputs * n
	num.SigmoidPairs(a.s[:units], a.t[:units], a.s[:units])
}

// begin takes samples up for their gradients.
func (a *abreast) begin(samples []sample, f []float32) {
	if a.df == nil {
		a.makeGradients()
	}
	a.take(samples, f, len(samples))
	clear(a.df)
	clear(a.loss)
}

// tree adds one tree's ∂R/∂f (without the 1/N) and K-L; q is leaves×labels.
func (a *abreast) tree(phi []uint32, q []float32) {
	p := a.reach(phi)
	mass := a.mass[len(phi)*a.n : a.nodes()*a.n]
	a.predict(p, q)
	a.ratios()
	a.leafMass(mass, p, q)
	a.splitGradients(phi)
}

// reach is the function reach for all samples (Eq. 1). It returns the leaves' part,
// leaves×n.
func (a *abreast) reach(phi []uint32) []float32 {
	root := a.row(a.node, 0)
	for i := range root {
		root[i] = 1
	}
	for n, unit := range phi {
		u := int(unit)
		num.Branch(a.row(a.node, 2*n+1), a.row(a.node, 2*n+2), a.row(a.node, n), a.row(a.s, u), a.row(a.t, u))
	}
	return a.node[len(phi)*a.n : a.nodes()*a.n]
}

// leafRun is how many leaves' probabilities a processor's cache holds while all labels
// take them.
const leafRun = 512

// predict is the function predict for all samples (Eq. 2): it sets a.g, labels×n, from
// p, leaves×n, and returns it.
func (a *abreast) predict(p, q []float32) []float32 {
	g := a.g[:a.labels*a.n]
	clear(g)
	for l := 0; l < a.leaves; l += leafRun {
		run := min(leafRun, a.leaves-l)
		num.AddProductT(g, q[l*a.labels:(l+run)*a.labels], p[l*a.n:(l+run)*a.n], run, a.n)
	}
	return g
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
	clear(mass)
	num.AddProduct(mass, q, a.r[:a.labels*a.n], a.labels, a.n)
	num.Mul32(mass, p)
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
