// Package patch stands for the real package of this name.
package patch

// Patch is a list of operations.
type Patch struct{ operations []string }

// Test adds a test.
func (p *Patch) Test(path string, _ any) *Patch {
	p.operations = append(p.operations, "test "+path)
	return p
}
