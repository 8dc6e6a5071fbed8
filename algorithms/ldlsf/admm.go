package ldlsf

import (
	"errors"
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/eigen"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/internal/linalg"
)

// products are what a round sums: products of features, of features with labels, and of labels. The last feature is 1.
type products struct {
	q, n int
	k    linalg.Matrix // q×q
	xd   linalg.Matrix // q×n
	dd   linalg.Matrix // n×n
}

// productsOf reads the sums of a round.
func productsOf(sums []float64, features, labels int) *products {
	p := &products{q: features + 1, n: labels}
	triangle := func(n int) linalg.Matrix {
		m := linalg.New(n, n)
		for i := range n {
			for j, x := range sums[:i+1] {
				m.Set(i, j, x)
				m.Set(j, i, x)
			}
			sums = sums[i+1:]
		}
		return m
	}
	p.k = triangle(p.q)
	p.xd = linalg.Of(sums[:p.q*p.n], p.q, p.n)
	sums = sums[p.q*p.n:]
	p.dd = triangle(p.n)
	return p
}

// rows returns the number of samples.
func (p *products) rows() float64 { return p.k.At(p.q-1, p.q-1) }

// laplacian returns Ψ.
func (p *products) laplacian() linalg.Matrix {
	rows, m := p.rows(), linalg.New(p.n, p.n)
	covariance := func(a, b int) float64 {
		return p.dd.At(a, b) - float64(p.xd.At(p.q-1, a)*p.xd.At(p.q-1, b))/rows
	}
	for a := range p.n {
		sum := 0.0
		for b := range p.n {
			correlation, own, other := 0.0, covariance(a, a), covariance(b, b)
			if own > vanishing*p.dd.At(a, a) && other > vanishing*p.dd.At(b, b) {
				correlation = covariance(a, b) / (math.Sqrt(own) * math.Sqrt(other))
			}
			m.Set(a, b, -correlation)
			sum += correlation
		}
		m.Set(a, a, m.At(a, a)+sum)
	}
	return m
}

// vanishing is the share of a label's squares up to which its variance counts as 0.
const vanishing = 1e-12

// jitter is added to the diagonal of K, as a share of its mean element.
const jitter = 1e-12

// errIndefinite says that the objective has no minimum.
var errIndefinite error = param.Errorf("lambda3", "is too great for the correlations of the labels: the objective has "+
	"no minimum")

// solver runs ADMM.
type solver struct {
	*products
	c          *Config
	u          linalg.Matrix   // n×n
	factors    []linalg.Matrix // q×q, of each column of u
	w, w1, w2  linalg.Matrix   // q×n
	multiplier linalg.Matrix   // q×n: V
	sums       []float64       // q: v
}

func newSolver(p *products, c *Config) (*solver, error) {
	s := &solver{products: p, c: c, w: linalg.New(p.q, p.n), w1: linalg.New(p.q, p.n), w2: linalg.New(p.q, p.n),
		multiplier: linalg.New(p.q, p.n), sums: make([]float64, p.q)}
	m := p.laplacian()
	for i := range m.V {
		m.V[i] *= 2 * c.Lambda3
	}
	for i := range p.n {
		m.Set(i, i, m.At(i, i)+1)
	}
	plain, _ := eigen.Symmetric(linalg.Of(append([]float64{}, m.V...), p.n, p.n))
	for _, x := range plain {
		if x <= 0 {
			return nil, errIndefinite
		}
	}
	for i := range m.V {
		m.V[i] += c.Rho
	}
	var values []float64
	values, s.u = eigen.Symmetric(m)
	trace := 0.0
	for i := range p.q {
		trace += p.k.At(i, i)
	}
	for _, value := range values {
		f := linalg.New(p.q, p.q)
		for i, x := range p.k.V {
			f.V[i] = value * x
		}
		for i := range p.q {
			add := float64(jitter*trace) / float64(p.q)
			if i < p.q-1 {
				add += c.Rho
			}
			f.Set(i, i, f.At(i, i)+add)
		}
		if err := linalg.Cholesky(f); err != nil {
			return nil, errors.New("the products of the features cannot be solved for: scale the features, or use a " +
				"greater rho")
		}
		s.factors = append(s.factors, f)
	}
	return s, nil
}

// step is a step of ADMM.
func (s *solver) step() {
	rho, q, n := s.c.Rho, s.q, s.n
	right := linalg.New(q, n)
	for i := range q {
		all := s.sums[i] - float64(rho*s.k.At(i, q-1))
		for c := range n {
			right.Set(i, c, s.xd.At(i, c)-s.multiplier.At(i, c)+float64(rho*(s.w1.At(i, c)+s.w2.At(i, c)))-all)
		}
	}
	turned := linalg.New(q, n)
	linalg.AddProduct(turned, right, s.u)
	for c, f := range s.factors {
		column := turned.Part(0, q, c, c+1)
		linalg.SolveLower(column, f)
		linalg.SolveUpper(column, f.T())
	}
	clear(s.w.V)
	linalg.AddProduct(s.w, turned, s.u.T())
	s.shrink()
	s.multiply()
}

// shrink sets W1 and W2. Both are 0 for the bias.
func (s *solver) shrink() {
	rho := s.c.Rho
	for i := range s.q - 1 {
		square := 0.0
		for c := range s.n {
			x := s.w.At(i, c) + s.multiplier.At(i, c)/rho
			y := x - s.w2.At(i, c)
			y = math.Copysign(max(0, math.Abs(y)-s.c.Lambda1/rho), y)
			s.w1.Set(i, c, y)
			s.w2.Set(i, c, x-y)
			square += float64((x - y) * (x - y))
		}
		share := 0.0
		if length := math.Sqrt(square); length > s.c.Lambda2/rho {
			share = 1 - s.c.Lambda2/rho/length
		}
		for c := range s.n {
			s.w2.Set(i, c, share*s.w2.At(i, c))
		}
	}
}

// multiply sets the multipliers.
func (s *solver) multiply() {
	rho := s.c.Rho
	whole, product := linalg.New(s.q, 1), linalg.New(s.q, 1)
	for i := range s.q {
		for c := range s.n {
			whole.V[i] += s.w.At(i, c)
			if i < s.q-1 {
				s.multiplier.Set(i, c, s.multiplier.At(i, c)+float64(rho*(s.w.At(i, c)-s.w1.At(i, c)-s.w2.At(i, c))))
			}
		}
	}
	linalg.AddProduct(product, s.k, whole)
	for i := range s.q {
		s.sums[i] += float64(rho * (product.V[i] - s.k.At(i, s.q-1)))
	}
}
