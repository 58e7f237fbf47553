package main

import (
	"strings"
	"testing"
)

const suiteStart = `[{"SpecReports":[{"LeafNodeType":"SynchronizedBeforeSuite","State":"passed"},`

func TestDecodeReport(t *testing.T) {
	for name, tc := range map[string]struct {
		report, summary, err, text string
	}{
		"all specs passed": {
			suiteStart + `{"LeafNodeType":"It","LeafNodeText":"should orphan","State":"passed","RunTime":1500000000}]}]`,
			"1 of 1 specs passed", "", "passed    1.5s  should orphan\n",
		},
		"a spec failed": {
			suiteStart + `{"LeafNodeType":"It","LeafNodeText":"should orphan","State":"failed","Failure":{"Message":"no pod\nremains"}}]}]`,
			"0 of 1 specs passed", "not all specs passed", "FAILED    0.0s  should orphan\n    no pod\n    remains\n",
		},
		"specs outside of the focus do not count": {
			suiteStart + `{"LeafNodeType":"It","LeafNodeText":"should watch","State":"skipped"}]}]`,
			"0 of 0 specs passed", "no spec ran", "",
		},
		"a spec that skips itself did not pass": {
			suiteStart + `{"LeafNodeType":"It","LeafNodeText":"should run","State":"skipped","Failure":{"Message":"needs a node"}}]}]`,
			"0 of 1 specs passed", "not all specs passed", "FAILED    0.0s  should run\n    needs a node\n",
		},
		"the suite failed before its specs": {
			`[{"SpecReports":[{"LeafNodeType":"SynchronizedBeforeSuite","State":"failed","Failure":{"Message":"no node"}}],"SpecialSuiteFailureReasons":["BeforeSuite failed"]}]`,
			"0 of 0 specs passed", "no spec ran", "FAILED outside of specs: SynchronizedBeforeSuite: no node\n",
		},
		"the suite failed after its specs": {
			`[{"SpecReports":[{"LeafNodeType":"It","LeafNodeText":"should orphan","State":"passed"}],"SpecialSuiteFailureReasons":["Interrupted by Timeout"]}]`,
			"1 of 1 specs passed", "not all specs passed",
			"passed    0.0s  should orphan\nFAILED outside of specs: Interrupted by Timeout\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := decodeReport([]byte(tc.report))
			if err != nil {
				t.Fatal(err)
			}
			failure := ""
			if o.err() != nil {
				failure = o.err().Error()
			}
			if o.summary() != tc.summary || failure != tc.err || o.String() != tc.text {
				t.Errorf("got %q, %q, %q", o.summary(), failure, o.String())
			}
		})
	}
}

func TestDecodeReportOfCutFile(t *testing.T) {
	if _, err := decodeReport([]byte(`[{"SpecReports":[`)); err == nil || !strings.Contains(err.Error(), "decode report") {
		t.Errorf("got %v", err)
	}
}
