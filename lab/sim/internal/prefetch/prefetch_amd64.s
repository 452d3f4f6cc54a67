#include "textflag.h"

// func lines(first *unsafe.Pointer, n int)
TEXT ·lines(SB), NOSPLIT, $0-16
	MOVQ first+0(FP), SI
	MOVQ n+8(FP), CX
loop:
	MOVQ (SI), AX
	PREFETCHT0 (AX)
	ADDQ $8, SI
	DECQ CX
	JNZ  loop
	RET
