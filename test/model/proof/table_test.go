package main

import (
	"slices"
	"testing"
)

const output = `| static Delete | 975 | 1 | 53 | 2 | 3 | 100ms |
| static Delete, a crash | 1234567 | 1 | 58 | 2 | 3 | 1m12.3s |
| static Delete beside kube-controller-manager | 2197 | 1 | 57 | 2 | 3 | 9.9s |
| gate switched | 5 | 1 | 6 | 2 | 3 | 0s |
| an hour | 7 | 1 | 8 | 2 | 3 | 11s |
| without a row | 7 | 1 | 8 | 2 | 3 | 11s |
found: step 9: gone, by 4067 states: Leaked
pkg/a: 1 killed by the model, 2 by unit tests, 3 survived, 4 not reached, 5 equivalent
pkg/b: 10 killed by the model, 20 by unit tests, 0 survived, 0 not reached, 0 equivalent
`

const before = `text

| world | no fault | a crash |
|---|---|---|
| static Delete | 1 / 2 / 3 | 4 / 5 / 6 – |
| unknown | 1 / 2 / 3 | 4 / 5 / 6 |

| world | no fault |
|---|---|
| static Delete ¹ | 1, 2, 3 |

| world | states / way / seconds |
|---|---|
| gate switched ² | 1 / 2 / 3 |

| world | states | longest shortest way | seconds |
|---|---|---|---|
| an hour | 1 | 2 | 3 |

| bug | in | broken rule | states until found |
|---|---|---|---|
| step 9: gone | upstream | ` + "`Leaked`" + ` | 1 |

| package | killed by the model | killed by unit tests | no difference | survive |
|---|---|---|---|---|
| ` + "`pkg/a`" + ` | 0 | 0 | 0 | 0 |
| ` + "`pkg/b`" + ` | 0 | 0 | 0 | 0 |
| **all** | **0** | **0** | **0** | **0** |

| seed | volumes |
|---|---|
| 306 | 1 |
`

const after = `text

| world | no fault | a crash |
|---|---|---|
| static Delete | 975 / 53 / 0.1 | 1,234,567 / 58 / 72 – |
| unknown | 1 / 2 / 3 | 4 / 5 / 6 |

| world | no fault |
|---|---|
| static Delete ¹ | 2,197, 57, 9.9 |

| world | states / way / seconds |
|---|---|
| gate switched ² | 5 / 6 / 0.0 |

| world | states | longest shortest way | seconds |
|---|---|---|---|
| an hour | 7 | 8 | 11 |

| bug | in | broken rule | states until found |
|---|---|---|---|
| step 9: gone | upstream | ` + "`Leaked`" + ` | 4,067 |

| package | killed by the model | killed by unit tests | no difference | survive |
|---|---|---|---|---|
| ` + "`pkg/a`" + ` | 1 | 2 | 5 | 7 |
| ` + "`pkg/b`" + ` | 10 | 20 | 0 | 0 |
| **all** | **11** | **22** | **5** | **7** |

| seed | volumes |
|---|---|
| 306 | 1 |
`

func TestNumbersOfTheRunAreWritten(t *testing.T) {
	r := read(output)
	if got := r.update(before); got != after {
		t.Errorf("the page is\n%s\nwant\n%s", got, after)
	}
	if want := []string{"unknown", "unknown, a crash"}; !slices.Equal(r.missing, want) {
		t.Errorf("rows without a result: %q, want %q", r.missing, want)
	}
	if got, want := r.unused(), []string{"without a row"}; !slices.Equal(got, want) {
		t.Errorf("results without a row: %q, want %q", got, want)
	}
}
