package main

import (
	"math"
	"math/cmplx"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// Values of the slots; Sudare's side has the same formulas.
func complexes(n int) (x, y []complex128) {
	x, y = make([]complex128, n), make([]complex128, n)
	part := func(i, a, b, m int) float64 { return float64((a*i+b)%m-m/2) / float64(m/2) }
	for i := range x {
		x[i] = complex(part(i, 7, 3, 41), part(i, 5, 1, 37))
		y[i] = complex(part(i, 11, 2, 29), 0)
	}
	return
}

func encode(params ckks.Parameters, values []complex128) *rlwe.Plaintext {
	pt := ckks.NewPlaintext(params, params.MaxLevel())
	try(ckks.NewEncoder(params).Encode(values, pt))
	return pt
}

func makeCkks(f folder, params ckks.Parameters) {
	f.write("params.json", params)
	sk, pk := makeKeys(f, params.Parameters)
	x, y := complexes(params.MaxSlots())
	f.write("x.pt", encode(params, x))
	f.write("x.ct", must(rlwe.NewEncryptor(params, pk).EncryptNew(encode(params, x))))
	f.write("y.ct", must(rlwe.NewEncryptor(params, sk).EncryptNew(encode(params, y))))
	// Eight slots, which repeat.
	few := ckks.NewPlaintext(params, params.MaxLevel())
	few.LogDimensions.Cols = 3
	try(ckks.NewEncoder(params).Encode(x[:8], few))
	f.write("few.ct", must(rlwe.NewEncryptor(params, sk).EncryptNew(few)))
}

func checkCkks(name string, theirs, ours folder) {
	var params ckks.Parameters
	ours.read("params.json", &params)
	own := new(ckks.Parameters)
	theirs.read("params.json", own)
	if !params.Equal(own) {
		report(name, "parameters", 1, 0)
	} else {
		report(name, "parameters", 0, 0)
	}
	x, y := complexes(params.MaxSlots())
	n := len(x)
	product, rotated, swapped := make([]complex128, n), make([]complex128, n), make([]complex128, n)
	for i := range x {
		product[i], rotated[i], swapped[i] = x[i]*y[i], x[(i+1)%n], cmplx.Conj(x[i])
	}
	distance := func(pt *rlwe.Plaintext, expected []complex128) (worst float64) {
		found := make([]complex128, n)
		try(ckks.NewEncoder(params).Decode(pt, found))
		for i := range expected {
			worst = math.Max(worst, cmplx.Abs(found[i]-expected[i]))
		}
		return
	}
	limit := math.Exp2(-20)
	// Keys and ciphertexts of ours.
	sk, pk, evk := ours.keys()
	decryptor := rlwe.NewDecryptor(params, sk)
	plain := new(rlwe.Plaintext)
	ours.read("x.pt", plain)
	report(name, "plaintext of ours decodes", distance(plain, x), limit)
	a, b := ours.ciphertext("x.ct"), ours.ciphertext("y.ct")
	report(name, "ciphertext of ours decrypts", distance(decryptor.DecryptNew(a), x), limit)
	report(name, "second ciphertext of ours decrypts", distance(decryptor.DecryptNew(b), y), limit)
	under := must(rlwe.NewEncryptor(params, pk).EncryptNew(encode(params, x)))
	report(name, "encrypted under a public key of ours", distance(decryptor.DecryptNew(under), x), limit)
	eval := ckks.NewEvaluator(params, evk)
	squared := must(eval.MulRelinNew(a, b))
	try(eval.Rescale(squared, squared))
	report(name, "product by keys of ours", distance(decryptor.DecryptNew(squared), product), limit)
	report(name, "rotation by keys of ours", distance(decryptor.DecryptNew(must(eval.RotateNew(a, 1))), rotated), limit)
	report(name, "conjugation by keys of ours", distance(decryptor.DecryptNew(must(eval.ConjugateNew(a))), swapped), limit)
	// What Sudare computed by keys of Lattigo.
	secret, _, _ := theirs.keys()
	decryptor = rlwe.NewDecryptor(params, secret)
	report(name, "product by Sudare", distance(decryptor.DecryptNew(ours.ciphertext("product.ct")), product), limit)
	report(name, "three parts by Sudare", distance(decryptor.DecryptNew(ours.ciphertext("three.ct")), product), limit)
	report(name, "rotation by Sudare", distance(decryptor.DecryptNew(ours.ciphertext("rotated.ct")), rotated), limit)
	report(name, "conjugation by Sudare", distance(decryptor.DecryptNew(ours.ciphertext("swapped.ct")), swapped), limit)
	report(name, "encrypted by Sudare under a public key", distance(decryptor.DecryptNew(ours.ciphertext("under.ct")), x), limit)
}
