// The peer of Sudare's exchange with Lattigo.
//
//	go run . make DIR SET...   writes keys, plaintexts and ciphertexts of each set into DIR/SET/theirs
//	go run . check DIR SET...  reads what Sudare answered into DIR/SET/ours, and prints what came out, a JSON object a line
//	go run . measure SUITE...  measures ops, ops-k3, schemes or bootstrap, a JSON object a line (bench.go)
//
// Sudare's side is the example `exchange` of `crates/lattigo`; bench/lattigo/run.sh runs all of it.
package main

import (
	"encoding"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/bgv"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// Sets with a plaintext modulus are of BFV and BGV.
type set struct {
	logN, logScale int
	logQ, logP     []int
	t              uint64
}

var sets = map[string]set{
	// Small, for tests; no security.
	"tiny-ckks":  {logN: 9, logQ: []int{50, 40}, logP: []int{51}, logScale: 40},
	"tiny-exact": {logN: 9, logQ: []int{45, 45}, logP: []int{46, 46}, t: 12289},
	// 128 bits. The second of each has digits of several primes; 12289 has slots for half of the coefficients of the third.
	"ckks-13":  {logN: 13, logQ: []int{55, 45, 45}, logP: []int{56}, logScale: 45},
	"ckks-14":  {logN: 14, logQ: []int{50, 40, 40, 40, 40, 40}, logP: []int{55, 55, 55}, logScale: 40},
	"exact-13": {logN: 13, logQ: []int{54, 54, 50}, logP: []int{55}, t: 65537},
	"exact-14": {logN: 14, logQ: []int{55, 55, 55, 55}, logP: []int{56, 56}, t: 786433},
	"exact-12": {logN: 12, logQ: []int{35, 35}, logP: []int{35}, t: 12289},
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func try(err error) {
	if err != nil {
		panic(err)
	}
}

type folder string

func (f folder) write(name string, object encoding.BinaryMarshaler) {
	try(os.WriteFile(filepath.Join(string(f), name), must(object.MarshalBinary()), 0o600))
}

func (f folder) read(name string, object encoding.BinaryUnmarshaler) {
	try(object.UnmarshalBinary(must(os.ReadFile(filepath.Join(string(f), name)))))
}

func (f folder) has(name string) bool {
	_, err := os.Stat(filepath.Join(string(f), name))
	return err == nil
}

func (f folder) ciphertext(name string) *rlwe.Ciphertext {
	ct := new(rlwe.Ciphertext)
	f.read(name, ct)
	return ct
}

func (f folder) keys() (sk *rlwe.SecretKey, pk *rlwe.PublicKey, evk *rlwe.MemEvaluationKeySet) {
	sk, pk, evk = new(rlwe.SecretKey), new(rlwe.PublicKey), new(rlwe.MemEvaluationKeySet)
	f.read("secret", sk)
	f.read("public", pk)
	f.read("keys", evk)
	return
}

// makeKeys writes keys for products, rotations by one and the swap of rows or conjugation.
func makeKeys(f folder, params rlwe.Parameters) (sk *rlwe.SecretKey, pk *rlwe.PublicKey) {
	kgen := rlwe.NewKeyGenerator(params)
	sk, pk = kgen.GenKeyPairNew()
	elements := []uint64{params.GaloisElement(1), params.GaloisElementOrderTwoOrthogonalSubgroup()}
	f.write("secret", sk)
	f.write("public", pk)
	f.write("keys", rlwe.NewMemEvaluationKeySet(kgen.GenRelinearizationKeyNew(sk), kgen.GenGaloisKeysNew(elements, sk)...))
	return
}

// line is what came out of one check.
type line struct {
	Suite string  `json:"suite"`
	Set   string  `json:"case"`
	Peer  string  `json:"peer"`
	Step  string  `json:"step"`
	Error float64 `json:"max_error"`
	Check string  `json:"check"`
}

var failed bool

// report prints a line: the largest error of CKKS, or how many slots of BFV and BGV are wrong.
func report(name, step string, err float64, limit float64) {
	check := "ok"
	if !(err <= limit) {
		check, failed = fmt.Sprintf("over %g", limit), true
	}
	fmt.Println(string(must(json.Marshal(line{"exchange", name, "lattigo v6.2.0", step, err, check}))))
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "measure" {
		measure(os.Args[2:])
		return
	}
	if len(os.Args) < 3 || (os.Args[1] != "make" && os.Args[1] != "check") {
		fmt.Fprintln(os.Stderr, "usage: lattigo make|check DIR SET... or lattigo measure SUITE...")
		os.Exit(2)
	}
	for _, name := range os.Args[3:] {
		s, known := sets[name]
		if !known {
			fmt.Fprintln(os.Stderr, "no set", name)
			os.Exit(2)
		}
		theirs := folder(filepath.Join(os.Args[2], name, "theirs"))
		ours := folder(filepath.Join(os.Args[2], name, "ours"))
		if os.Args[1] == "make" {
			try(os.MkdirAll(string(theirs), 0o700))
		}
		if s.t == 0 {
			literal := ckks.ParametersLiteral{LogN: s.logN, LogQ: s.logQ, LogP: s.logP, LogDefaultScale: s.logScale}
			params := must(ckks.NewParametersFromLiteral(literal))
			if os.Args[1] == "make" {
				makeCkks(theirs, params)
			} else {
				checkCkks(name, theirs, ours)
			}
		} else {
			literal := bgv.ParametersLiteral{LogN: s.logN, LogQ: s.logQ, LogP: s.logP, PlaintextModulus: s.t}
			params := must(bgv.NewParametersFromLiteral(literal))
			if os.Args[1] == "make" {
				makeExact(theirs, params)
			} else {
				checkExact(name, theirs, ours)
			}
		}
	}
	if failed {
		os.Exit(1)
	}
}
