package main

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/bgv"
)

// Values of the slots; Sudare's side has the same formulas.
func integers(n int, t uint64) (x, y []uint64) {
	x, y = make([]uint64, n), make([]uint64, n)
	for i := range x {
		j := uint64(i)
		x[i], y[i] = (3*j*j+5*j+1)%t, (7*j+2)%t
	}
	return
}

func encodeExact(params bgv.Parameters, values []uint64, scale uint64) *rlwe.Plaintext {
	pt := bgv.NewPlaintext(params, params.MaxLevel())
	pt.Scale = params.NewScale(scale)
	try(bgv.NewEncoder(params).Encode(values, pt))
	return pt
}

// bfvScale is the scale at which Sudare takes BFV ciphertexts as they are: −Q modulo t.
func bfvScale(params bgv.Parameters) uint64 {
	t := params.PlaintextModulus()
	product := uint64(1)
	for _, q := range params.Q() {
		product = product * (q % t) % t
	}
	return t - product
}

func makeExact(f folder, params bgv.Parameters) {
	f.write("params.json", params)
	sk, pk := makeKeys(f, params.Parameters)
	x, y := integers(params.MaxSlots(), params.PlaintextModulus())
	public, secret := rlwe.NewEncryptor(params, pk), rlwe.NewEncryptor(params, sk)
	f.write("x.pt", encodeExact(params, x, 1))
	f.write("x.ct", must(public.EncryptNew(encodeExact(params, x, 1))))
	f.write("y.ct", must(secret.EncryptNew(encodeExact(params, y, 5))))
	f.write("bfv-y.ct", must(secret.EncryptNew(encodeExact(params, y, bfvScale(params)))))
}

func checkExact(name string, theirs, ours folder) {
	var params bgv.Parameters
	ours.read("params.json", &params)
	own := new(bgv.Parameters)
	theirs.read("params.json", own)
	if !params.Equal(own) {
		report(name, "parameters", 1, 0)
	} else {
		report(name, "parameters", 0, 0)
	}
	t := params.PlaintextModulus()
	x, y := integers(params.MaxSlots(), t)
	n, row := len(x), len(x)/2
	product, rotated, swapped := make([]uint64, n), make([]uint64, n), make([]uint64, n)
	for i := range x {
		product[i] = x[i] * y[i] % t
		rotated[i] = x[i/row*row+(i+1)%row]
		swapped[i] = x[(i+row)%n]
	}
	// How many slots are wrong.
	wrong := func(pt *rlwe.Plaintext, expected []uint64) (count float64) {
		found := make([]uint64, n)
		try(bgv.NewEncoder(params).Decode(pt, found))
		for i := range expected {
			if found[i] != expected[i] {
				count++
			}
		}
		return
	}
	sk, pk, evk := ours.keys()
	decryptor := rlwe.NewDecryptor(params, sk)
	plain := new(rlwe.Plaintext)
	ours.read("x.pt", plain)
	report(name, "plaintext of ours decodes", wrong(plain, x), 0)
	under := must(rlwe.NewEncryptor(params, pk).EncryptNew(encodeExact(params, x, 1)))
	report(name, "encrypted under a public key of ours", wrong(decryptor.DecryptNew(under), x), 0)
	secret, _, _ := theirs.keys()
	decryptTheirs := rlwe.NewDecryptor(params, secret)
	for _, scheme := range []string{"bgv", "bfv"} {
		eval := bgv.NewEvaluator(params, evk, scheme == "bfv")
		a, b := ours.ciphertext(scheme+"-x.ct"), ours.ciphertext(scheme+"-y.ct")
		report(name, scheme+": ciphertext of ours decrypts", wrong(decryptor.DecryptNew(a), x), 0)
		report(name, scheme+": second ciphertext of ours decrypts", wrong(decryptor.DecryptNew(b), y), 0)
		if ours.has(scheme + "-product.ct") {
			multiplied := must(eval.MulRelinNew(a, b))
			if scheme == "bgv" {
				try(eval.Rescale(multiplied, multiplied))
			}
			report(name, scheme+": product by keys of ours", wrong(decryptor.DecryptNew(multiplied), product), 0)
			found := decryptTheirs.DecryptNew(ours.ciphertext(scheme + "-product.ct"))
			report(name, scheme+": product by Sudare", wrong(found, product), 0)
		}
		report(name, scheme+": rotation by keys of ours", wrong(decryptor.DecryptNew(must(eval.RotateColumnsNew(a, 1))), rotated), 0)
		report(name, scheme+": swap by keys of ours", wrong(decryptor.DecryptNew(must(eval.RotateRowsNew(a))), swapped), 0)
		report(name, scheme+": rotation by Sudare", wrong(decryptTheirs.DecryptNew(ours.ciphertext(scheme+"-rotated.ct")), rotated), 0)
		report(name, scheme+": swap by Sudare", wrong(decryptTheirs.DecryptNew(ours.ciphertext(scheme+"-swapped.ct")), swapped), 0)
		report(name, scheme+": encrypted by Sudare under a public key", wrong(decryptTheirs.DecryptNew(ours.ciphertext(scheme+"-under.ct")), x), 0)
	}
}
