//! The custom resource definitions: the files are what the types generate.

use std::path::Path;

use frugality_operator::crd::definitions;
use kubectl_frugality::definitions::write;

#[test]
fn the_files_are_what_the_types_generate() {
    let written = Path::new(env!("CARGO_TARGET_TMPDIR")).join("definitions");
    std::fs::create_dir_all(&written).unwrap();
    write(&written).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for folder in ["crds", "charts/frugality-operator/files/crds"] {
        for (name, _) in definitions() {
            let [file, generated] = [root.join(folder), written.clone()]
                .map(|folder| std::fs::read_to_string(folder.join(name)).unwrap_or_default());
            assert!(
                file == generated && !file.is_empty(),
                "{folder}/{name} differs from the types: run `make generate`"
            );
        }
    }
}
