package ptsvm

import (
	"math"

	"github.com/coppice-ldl/coppice/internal/num"
)

// The bounds of the fit of a sigmoid.
const (
	sigmoidSteps  = 100
	sigmoidRidge  = 1e-12
	sigmoidEnough = 1e-10 // of the gradient, as a share of the weights
)

// sigmoid fits A and B of 1 / (1 + exp(A f + B)) to values f of samples with the weights first as samples of the
// first label, and second as those of the second one: Newton steps for the cross-entropy with Platt's targets, in the
// form of Lin, Lin and Weng 2007.
func sigmoid(f, first, second []float64) (a, b float64) {
	up, down := 0.0, 0.0
	for i := range f {
		up, down = up+first[i], down+second[i]
	}
	high, low := (up+1)/(up+2), 1/(down+2)
	b = num.Log((down + 1) / (up + 1))
	loss := func(a, b float64) (sum float64) {
		for i, x := range f {
			z := float64(a*x) + b
			// -t ln q - (1 - t) ln(1 - q), where q = 1 / (1 + exp(z))
			tail := num.Log(1+num.Exp(-math.Abs(z))) + max(0, z)
			weight := first[i] + second[i]
			target := float64(first[i]*high) + float64(second[i]*low)
			sum += float64(weight*tail) - float64((weight-target)*z)
		}
		return sum
	}
	value := loss(a, b)
	for range sigmoidSteps {
		var ga, gb, haa, hab, hbb float64
		for i, x := range f {
			z := float64(a*x) + b
			q := 1 / (1 + num.Exp(min(z, 700)))
			weight := first[i] + second[i]
			target := float64(first[i]*high) + float64(second[i]*low)
			slope := target - float64(weight*q) // the derivative by z
			curve := float64(weight * float64(q*(1-q)))
			ga += float64(slope * x)
			gb += slope
			haa += float64(curve * float64(x*x))
			hab += float64(curve * x)
			hbb += curve
		}
		if math.Abs(ga)+math.Abs(gb) <= sigmoidEnough*(up+down) {
			break
		}
		haa += sigmoidRidge
		hbb += sigmoidRidge
		det := float64(haa*hbb) - float64(hab*hab)
		if !(det > 0) {
			break
		}
		da, db := (float64(hab*gb)-float64(hbb*ga))/det, (float64(hab*ga)-float64(haa*gb))/det
		promised, t := float64(ga*da)+float64(gb*db), 1.0
		next := loss(a+da, b+db)
		for ; t > 1e-10 && !(next <= value+float64(float64(decrease*t)*promised)); t /= 2 {
			next = loss(a+float64(t/2*da), b+float64(t/2*db))
		}
		if t <= 1e-10 {
			break
		}
		a, b, value = a+float64(t*da), b+float64(t*db), next
	}
	return a, b
}
