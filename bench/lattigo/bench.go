package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand"
	"os"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/tuneinsight/lattigo/v6/circuits/ckks/bootstrapping"
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/bgv"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// Suites of the lab by the lines that have the same names there, and the sets that its plans choose.
var suites = map[string]func(){
	"ops": func() { measureCkks("ops", set{logN: 14, logQ: []int{60, 40, 40, 40}, logP: []int{60}, logScale: 40}) },
	"ops-k3": func() {
		logQ := []int{60, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40}
		measureCkks("ops-k3", set{logN: 15, logQ: logQ, logP: []int{47, 47, 47}, logScale: 40})
	},
	"schemes": func() {
		bfv3 := set{logQ: []int{46, 46, 46}, logP: []int{47, 47, 47}}
		bfv6 := set{logQ: []int{40, 40, 40, 40, 40, 40}, logP: []int{43, 43, 43}}
		bgv3 := set{logQ: []int{25, 36, 36, 36}, logP: []int{37, 37, 37, 37}}
		bgv6 := set{logQ: []int{25, 36, 36, 35, 36, 36, 37}, logP: []int{39, 39, 39, 39}}
		measureExact("bfv", 3, bfv3)
		measureExact("bfv", 6, bfv6)
		measureExact("bgv", 3, bgv3)
		measureExact("bgv", 6, bgv6)
	},
	// The library's default set with a dense secret and a sparse one within, of the shape of Sudare's set C. It takes 8 GB of
	// memory. The special primes are those that the library adds: the whole modulus is above the limit for 128 bits.
	"bootstrap": func() {
		literal := bootstrapping.N15QP880H16384H32
		measureBootstrap(literal.SchemeParams, literal.BootstrappingParams)
	},
}

// timed is a line: medians of one operation in ms, by the processor time of all threads and by the wall.
type timed struct {
	Suite    string  `json:"suite"`
	Case     string  `json:"case"`
	Depth    int     `json:"depth,omitempty"`
	N        int     `json:"n"`
	Params   string  `json:"params"`
	Peer     string  `json:"peer"`
	CpuMs    float64 `json:"cpu_ms"`
	MedianMs float64 `json:"median_ms"`
	Rounds   int     `json:"rounds"`
	Error    float64 `json:"max_error"`
	Check    string  `json:"check"`
}

// clocks are processor and wall time in ms.
func clocks() (cpu, wall float64) {
	var usage syscall.Rusage
	try(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	ms := func(t syscall.Timeval) float64 { return float64(t.Sec)*1e3 + float64(t.Usec)/1e3 }
	return ms(usage.Utime) + ms(usage.Stime), float64(time.Now().UnixNano()) / 1e6
}

// Least time of a sample and of a case in ms, least samples, and the most time of a case with more than these.
const (
	leastSample = 2.0
	enough      = 400.0
	leastRounds = 5
	most        = 20_000.0
)

// of measures op, of which each call does `times` operations, then checks its last answer.
func (l timed) of(name string, times int, op func(), wrong func() float64, limit float64) {
	op()
	repeat := 1
	for {
		_, began := clocks()
		for range repeat {
			op()
		}
		if _, ended := clocks(); ended-began >= leastSample {
			break
		}
		repeat *= 2
	}
	var cpu, wall []float64
	_, start := clocks()
	for {
		c, w := clocks()
		for range repeat {
			op()
		}
		ended, now := clocks()
		cpu, wall = append(cpu, (ended-c)/float64(repeat*times)), append(wall, (now-w)/float64(repeat*times))
		if taken := now - start; (taken > enough && len(cpu) >= leastRounds) || taken > most {
			break
		}
	}
	median := func(x []float64) float64 {
		slices.Sort(x)
		return x[len(x)/2]
	}
	l.Case, l.CpuMs, l.MedianMs, l.Rounds, l.Error, l.Check = name, median(cpu), median(wall), len(cpu), wrong(), "ok"
	if !(l.Error <= limit) {
		l.Check, failed = fmt.Sprintf("over %g", limit), true
	}
	fmt.Println(string(must(json.Marshal(l))))
}

func lineOf(suite string, s set) timed {
	params := fmt.Sprintf("{%v|%v}", s.logQ, s.logP)
	return timed{Suite: suite, N: 1 << s.logN, Params: params, Peer: "lattigo v6.2.0"}
}

func uniform(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = 2*rand.Float64() - 1
	}
	return x
}

func measureCkks(suite string, s set) {
	literal := ckks.ParametersLiteral{LogN: s.logN, LogQ: s.logQ, LogP: s.logP, LogDefaultScale: s.logScale}
	params := must(ckks.NewParametersFromLiteral(literal))
	l, n, limit := lineOf(suite, s), params.MaxSlots(), math.Exp2(-18)
	kgen := rlwe.NewKeyGenerator(params)
	sk, pk := kgen.GenKeyPairNew()
	rotations := []int{1, 2, 3, 4, 5, 6, 7, 8}
	if suite == "ops-k3" {
		rotations = append(rotations, 9, 10, 11, 12, 13, 14, 15, 16)
	}
	elements := append(params.GaloisElements(rotations), params.GaloisElementsForInnerSum(1, n)...)
	slices.Sort(elements)
	galois := kgen.GenGaloisKeysNew(slices.Compact(elements), sk)
	eval := ckks.NewEvaluator(params, rlwe.NewMemEvaluationKeySet(kgen.GenRelinearizationKeyNew(sk), galois...))
	encoder, public, decryptor := ckks.NewEncoder(params), rlwe.NewEncryptor(params, pk), rlwe.NewDecryptor(params, sk)

	x, y, found := uniform(n), uniform(n), make([]float64, n)
	plain, other, read := ckks.NewPlaintext(params, params.MaxLevel()), ckks.NewPlaintext(params, params.MaxLevel()), ckks.NewPlaintext(params, params.MaxLevel())
	try(encoder.Encode(x, plain))
	try(encoder.Encode(y, other))
	a, b := must(public.EncryptNew(plain)), must(public.EncryptNew(other))
	fresh := func() *rlwe.Ciphertext { return ckks.NewCiphertext(params, 1, params.MaxLevel()) }
	out, scaled := fresh(), ckks.NewCiphertext(params, 1, params.MaxLevel()-1)
	// The largest distance of slots from what they should be.
	far := func(pt *rlwe.Plaintext, wanted func(i int) float64) func() float64 {
		return func() (worst float64) {
			try(encoder.Decode(pt, found))
			for i, v := range found {
				worst = max(worst, math.Abs(v-wanted(i)))
			}
			return
		}
	}
	of := func(ct *rlwe.Ciphertext, wanted func(i int) float64) func() float64 {
		return func() float64 { return far(decryptor.DecryptNew(ct), wanted)() }
	}
	same := func(i int) float64 { return x[i] }
	product := func(i int) float64 { return x[i] * y[i] }
	turned := func(k int) func(i int) float64 { return func(i int) float64 { return x[(i+k)%n] } }

	if suite == "ops" {
		secret := rlwe.NewEncryptor(params, sk)
		l.of("encode", 1, func() { try(encoder.Encode(x, plain)) }, far(plain, same), limit)
		l.of("encrypt public", 1, func() { try(public.Encrypt(plain, out)) }, of(out, same), limit)
		l.of("encrypt secret", 1, func() { try(secret.Encrypt(plain, out)) }, of(out, same), limit)
		l.of("decrypt and decode", 1, func() {
			decryptor.Decrypt(a, read)
			try(encoder.Decode(read, found))
		}, far(read, same), limit)
		l.of("add", 1, func() { try(eval.Add(a, b, out)) }, of(out, func(i int) float64 { return x[i] + y[i] }), limit)
		l.of("mul_plain + rescale", 1, func() {
			try(eval.Mul(a, other, out))
			try(eval.Rescale(out, scaled))
		}, of(scaled, product), limit)
	} else {
		total := 0.0
		for _, v := range x {
			total += v
		}
		sum := func(int) float64 { return total }
		l.of("total sum", 1, func() { try(eval.InnerSum(a, 1, n, out)) }, of(out, sum), limit*float64(n))
	}
	l.of("mul + relin + rescale", 1, func() {
		try(eval.MulRelin(a, b, out))
		try(eval.Rescale(out, scaled))
	}, of(scaled, product), limit)
	turn := fresh()
	l.of("rotate", 1, func() { try(eval.Rotate(a, 1, turn)) }, of(turn, turned(1)), limit)
	all := map[int]*rlwe.Ciphertext{}
	for _, k := range rotations {
		all[k] = fresh()
	}
	worst := func() (worst float64) {
		for k, ct := range all {
			worst = max(worst, of(ct, turned(k))())
		}
		return
	}
	name, times := "16 hoisted rotations", 1
	if suite == "ops" {
		name, times = "rotate, 8 hoisted, each", len(rotations)
	}
	l.of(name, times, func() { try(eval.RotateHoisted(a, rotations, all)) }, worst, limit)
}

// measureExact takes one product at the highest level, in BGV with its switch to the next, and as many squares in a row as the
// set is for.
func measureExact(scheme string, depth int, s set) {
	s.logN, s.t = 14, 65537
	params := must(bgv.NewParametersFromLiteral(bgv.ParametersLiteral{LogN: s.logN, LogQ: s.logQ, LogP: s.logP, PlaintextModulus: s.t}))
	kgen := rlwe.NewKeyGenerator(params)
	sk := kgen.GenSecretKeyNew()
	eval := bgv.NewEvaluator(params, rlwe.NewMemEvaluationKeySet(kgen.GenRelinearizationKeyNew(sk)), scheme == "bfv")
	encoder, encryptor, decryptor := bgv.NewEncoder(params), rlwe.NewEncryptor(params, sk), rlwe.NewDecryptor(params, sk)
	n := params.MaxSlots()
	x, found := make([]uint64, n), make([]uint64, n)
	for i := range x {
		x[i] = rand.Uint64() % s.t
	}
	encrypted := func() *rlwe.Ciphertext { return must(encryptor.EncryptNew(encodeExact(params, x, 1))) }
	a, b, out := encrypted(), encrypted(), bgv.NewCiphertext(params, 1, params.MaxLevel())
	// How many slots are not x to the 2^squares.
	wrong := func(ct *rlwe.Ciphertext, squares int) (count float64) {
		try(encoder.Decode(decryptor.DecryptNew(ct), found))
		for i, v := range x {
			for range squares {
				v = v * v % s.t
			}
			if found[i] != v {
				count++
			}
		}
		return
	}
	l := lineOf("schemes", s)
	l.Depth = depth
	sum := bgv.NewCiphertext(params, 1, params.MaxLevel())
	l.of(scheme+" add", 1, func() { try(eval.Add(a, b, sum)) }, func() (count float64) {
		try(encoder.Decode(decryptor.DecryptNew(sum), found))
		for i, v := range x {
			if found[i] != 2*v%s.t {
				count++
			}
		}
		return
	}, 0)
	last := out
	if scheme == "bgv" {
		last = bgv.NewCiphertext(params, 1, params.MaxLevel()-1)
	}
	l.of(scheme+" multiply", 1, func() {
		try(eval.MulRelin(a, b, out))
		if scheme == "bgv" {
			try(eval.Rescale(out, last))
		}
	}, func() float64 { return wrong(last, 1) }, 0)
	var squared *rlwe.Ciphertext
	l.of(scheme+" all products", 1, func() {
		squared = a
		for range depth {
			squared = must(eval.MulRelinNew(squared, squared))
			if scheme == "bgv" {
				try(eval.Rescale(squared, squared))
			}
		}
	}, func() float64 { return wrong(squared, depth) }, 0)
}

// measureBootstrap refreshes random complex slots. The error is the root of the mean square of real and imaginary parts.
func measureBootstrap(scheme ckks.ParametersLiteral, literal bootstrapping.ParametersLiteral) {
	params := must(ckks.NewParametersFromLiteral(scheme))
	refresh := must(bootstrapping.NewParametersFromLiteral(params, literal))
	// The keys fill the memory: garbage goes early.
	debug.SetGCPercent(5)
	sk := rlwe.NewKeyGenerator(params).GenSecretKeyNew()
	keys, _, err := refresh.GenEvaluationKeys(sk)
	try(err)
	eval := must(bootstrapping.NewEvaluator(refresh, keys))
	encoder, n := ckks.NewEncoder(params), params.MaxSlots()
	x, re, im := make([]complex128, n), uniform(n), uniform(n)
	for i := range x {
		x[i] = complex(re[i], im[i]) / complex(math.Sqrt2, 0)
	}
	plain := ckks.NewPlaintext(params, 0)
	try(encoder.Encode(x, plain))
	low := must(rlwe.NewEncryptor(params, sk).EncryptNew(plain))
	var high *rlwe.Ciphertext
	l := lineOf("bootstrap", set{logN: params.LogN(), logQ: scheme.LogQ, logP: scheme.LogP})
	l.Params = fmt.Sprintf("%s, %.0f bits in all, up to level %d", l.Params, refresh.BootstrappingParameters.LogQP(), eval.OutputLevel())
	l.of("C, complex, 1", 1, func() { high = must(eval.Bootstrap(low.CopyNew())) }, func() float64 {
		found, sum := make([]complex128, n), 0.0
		try(encoder.Decode(rlwe.NewDecryptor(params, sk).DecryptNew(high), found))
		for i, z := range found {
			d := z - x[i]
			sum += real(d)*real(d) + imag(d)*imag(d)
		}
		return math.Sqrt(sum / float64(2*n))
	}, math.Exp2(-12))
}

func measure(names []string) {
	for _, name := range names {
		run, known := suites[name]
		if !known {
			fmt.Fprintln(os.Stderr, "no suite", name)
			os.Exit(2)
		}
		run()
	}
	if failed {
		os.Exit(1)
	}
}
