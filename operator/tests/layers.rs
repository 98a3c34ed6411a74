//! The directions of imports in the workspace, as docs/architecture.md draws them, and the names of its types.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::{
    Attribute, File, Item, ItemMod, UseTree, Visibility,
    visit::{self, Visit},
};

/// The crates whose modules must not import each other in a circle, with their names in paths. `listener` and
/// `meter/mailbox` have one module each. The servers in `examples/` are candidates, not the product.
const CRATES: [(&str, &str); 8] = [
    ("measure", "frugality_measure"),
    ("operator", "frugality_operator"),
    ("cli", "kubectl_frugality"),
    ("meter", "frugality_meter"),
    ("injector", "frugality_injector"),
    ("injector/runner", "frugality_runner"),
    ("tests/accuracy", "frugality_accuracy"),
    ("tests/tracer", "frugality_tracer"),
];

/// The operator's layers: a module may use modules of the same line and of the lines above. The longest matching
/// prefix counts.
const LAYERS: [&[&str]; 16] = [
    &["api", "crd", "digest", "text", "time"],
    &["load"],
    &[
        "plan::protocol",
        "plan::names",
        "plan::facts",
        "plan::action",
    ],
    &["plan::baseline"],
    &["plan::settings"],
    &["plan::ledger"],
    &["plan::retention"],
    &["plan::images"],
    &["plan::placement"],
    &["plan::objects", "plan::verdict"],
    &["plan::database", "plan::report"],
    &["plan::context"],
    &["plan::stages"],
    &["plan", "plan::trace"],
    &["io"],
    &["main"],
];

/// What the command line may use of the operator. `doctor` checks the definitions as the operator's own check does.
/// It asks whether nodes take pods as the operator does.
const FOR_CLI: [&str; 8] = [
    "api",
    "crd",
    "io::check",
    "load",
    "plan::facts::scheduling",
    "plan::ledger",
    "plan::report",
    "text",
];

/// The crates of the product. A name of a public type occurs once in all of them together.
const PRODUCT: [&str; 8] = [
    "measure",
    "operator",
    "cli",
    "meter",
    "meter/mailbox",
    "injector",
    "injector/runner",
    "listener",
];

type Module = Vec<String>;
/// Each module with the modules that it uses.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn no_modules_import_each_other_in_a_circle() {
    for (folder, name) in CRATES {
        let imports = imports(folder, name);
        assert!(!imports.is_empty(), "{folder} has no modules");
        let circle = circle(&imports);
        assert!(circle.is_empty(), "{folder}: {circle:#?}");
    }
}

#[test]
fn the_operators_layers_use_only_the_layers_below() {
    for (module, used) in imports("operator", "frugality_operator") {
        for other in used {
            assert!(
                layer(&other) <= layer(&module),
                "{} uses {}, a higher layer",
                module.join("::"),
                other.join("::")
            );
        }
    }
}

#[test]
fn each_part_of_plan_has_a_layer() {
    for module in files("operator").into_keys() {
        let [first, part] = module.as_slice() else {
            continue;
        };
        let path = format!("{first}::{part}");
        let is_listed = LAYERS.iter().any(|layer| layer.contains(&path.as_str()));
        assert!(first != "plan" || is_listed, "{path} is not in LAYERS");
    }
}

#[test]
fn no_stage_of_a_pass_uses_another() {
    let stage = |module: &Module| {
        let is_stage = module.len() > 2 && module[..2] == ["plan", "stages"];
        is_stage.then(|| module[2].clone())
    };
    let imports = imports("operator", "frugality_operator");
    assert!(imports.keys().filter_map(stage).count() > 8);
    for (module, used) in &imports {
        for other in used.iter().filter_map(stage) {
            let own = stage(module);
            assert!(
                own.as_ref().is_none_or(|own| *own == other),
                "{} uses the stage {other}",
                module.join("::")
            );
        }
    }
}

#[test]
fn the_command_line_uses_only_the_resource_and_its_texts() {
    let mut used = BTreeSet::new();
    for (module, paths) in outside_paths("cli", "frugality_operator") {
        for path in paths {
            let path = path.join("::");
            let allowed = FOR_CLI.into_iter().find(|part| is_within(&path, part));
            let module = module.join("::");
            used.insert(
                allowed.unwrap_or_else(|| panic!("{module} uses frugality_operator::{path}")),
            );
        }
    }
    assert_eq!(used, BTreeSet::from(FOR_CLI));
}

/// Whether a path is this module or leads into it.
fn is_within(path: &str, module: &str) -> bool {
    path == module || path.starts_with(&format!("{module}::"))
}

#[test]
fn crates_depend_on_each_other_in_one_direction() {
    let allowed: [(&str, &[&str]); 8] = [
        ("measure", &[]),
        ("listener", &[]),
        ("meter/mailbox", &[]),
        ("injector/runner", &["frugality-measure"]),
        (
            "meter",
            &[
                "frugality-listener",
                "frugality-measure",
                "frugality-mailbox",
            ],
        ),
        ("injector", &["frugality-measure"]),
        ("operator", &["frugality-listener", "frugality-measure"]),
        (
            "cli",
            &[
                "frugality-listener",
                "frugality-measure",
                "frugality-operator",
            ],
        ),
    ];
    for (folder, allowed) in allowed {
        let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let dependencies = dependencies.split("\n[").next().unwrap_or_default();
        for line in dependencies.lines() {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            let is_ours = name.starts_with("frugality-") || name == "kubectl-frugality";
            assert!(!is_ours || allowed.contains(&name), "{folder} uses {name}");
            let is_kubernetes = ["kube", "k8s-openapi"].contains(&name);
            assert!(
                !is_kubernetes || ["operator", "cli"].contains(&folder),
                "{folder} uses {name}"
            );
        }
    }
}

#[test]
fn a_public_type_of_the_product_has_a_name_of_its_own() {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in PRODUCT {
        let library = root().join(folder).join("src/lib.rs");
        let library = library.exists().then_some(library);
        let paths: Vec<PathBuf> = files(folder).into_values().chain(library).collect();
        assert!(!paths.is_empty(), "{folder} has no files");
        for path in paths {
            let syntax = syn::parse_file(&fs::read_to_string(&path).unwrap()).unwrap();
            for name in public_types(&syntax.items) {
                names.entry(name).or_default().push(format!("{path:?}"));
            }
        }
    }
    assert!(names.len() > 300, "{} names", names.len());
    let twice: BTreeMap<_, _> = names
        .into_iter()
        .filter(|(_, files)| files.len() > 1)
        .collect();
    assert!(
        twice.is_empty(),
        "give one of them another name: {twice:#?}"
    );
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn layer(module: &Module) -> usize {
    let path = module.join("::");
    (0..LAYERS.len())
        .flat_map(|layer| LAYERS[layer].iter().map(move |prefix| (prefix, layer)))
        .filter(|(prefix, _)| is_within(&path, prefix))
        .max_by_key(|(prefix, _)| prefix.len())
        .unwrap_or_else(|| {
            panic!("{path} is in no layer: add it to LAYERS and to docs/architecture.md")
        })
        .1
}

/// The modules of a crate's `src`, with their files. `lib.rs` has only declarations, so it is left out.
fn files(folder: &str) -> BTreeMap<Module, PathBuf> {
    fn add(folder: &Path, module: &[String], found: &mut BTreeMap<Module, PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let mut own = module.to_vec();
            own.push(name.clone());
            if path.is_dir() {
                add(&path, &own, found);
            } else if path.extension().is_some_and(|it| it == "rs")
                && !["lib", "tests"].contains(&name.as_str())
            {
                found.insert(own, path);
            }
        }
    }
    let mut found = BTreeMap::new();
    add(&root().join(folder).join("src"), &[], &mut found);
    found
}

fn imports(folder: &str, name: &str) -> Imports {
    let files = files(folder);
    let of = |(module, path): (&Module, &PathBuf)| {
        let used = paths(path, module)
            .into_iter()
            .filter_map(|path| inside(&path, module, name))
            .filter_map(|path| {
                // A path ends with an item, or in a module that is used as a whole.
                (1..=path.len())
                    .rev()
                    .map(|length| path[..length].to_vec())
                    .find(|prefix| files.contains_key(prefix))
            })
            .filter(|other| other != module)
            .collect();
        (module.clone(), used)
    };
    files.iter().map(of).collect()
}

/// The paths of another crate that the modules of this one use.
fn outside_paths(folder: &str, other: &str) -> Imports {
    let of = |(module, path): (&Module, &PathBuf)| {
        let paths = paths(path, module).into_iter();
        let of_other = paths.filter(|path| path[0] == other);
        (
            module.clone(),
            of_other.map(|path| path[1..].to_vec()).collect(),
        )
    };
    files(folder).iter().map(of).collect()
}

/// A path from the crate's root, if it is one of this crate.
fn inside(path: &[String], module: &Module, name: &str) -> Option<Module> {
    let is_binary = module == &["main"];
    match path[0].as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module.as_slice(), &path[1..]].concat()),
        "super" => {
            let ups = path.iter().take_while(|part| *part == "super").count();
            let up = &module[..module.len().checked_sub(ups)?];
            Some([up, &path[ups..]].concat())
        }
        first if first == name && is_binary => Some(path[1..].to_vec()),
        // `use child::Item` of a module that the file declares.
        _ if is_binary => Some(path.to_vec()),
        _ => Some([module.as_slice(), path].concat()),
    }
}

/// The paths that a file uses outside its tests. A re-export (`pub use`) is not a use.
fn paths(file: &Path, module: &Module) -> BTreeSet<Module> {
    let text = fs::read_to_string(file).unwrap();
    let syntax: File =
        syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", module.join("::")));
    let mut collector = Collector::default();
    collector.visit_file(&syntax);
    collector.paths
}

#[derive(Default)]
struct Collector {
    paths: BTreeSet<Module>,
}

impl Collector {
    fn tree(&mut self, tree: &UseTree, prefix: &[String]) {
        let with = |name: String| [prefix, &[name]].concat();
        match tree {
            UseTree::Path(path) => self.tree(&path.tree, &with(path.ident.to_string())),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(tree, prefix);
                }
            }
            UseTree::Name(name) if name.ident == "self" => {
                self.paths.insert(prefix.to_vec());
            }
            UseTree::Name(name) => {
                self.paths.insert(with(name.ident.to_string()));
            }
            UseTree::Rename(rename) => {
                self.paths.insert(with(rename.ident.to_string()));
            }
            UseTree::Glob(_) => {
                self.paths.insert(prefix.to_vec());
            }
        }
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Use(used) if matches!(used.vis, Visibility::Inherited) => {
                self.tree(&used.tree, &[]);
            }
            Item::Use(_) => {}
            _ => visit::visit_item(self, item),
        }
    }

    /// Visibilities such as `pub(in crate::plan)` are not uses.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<_> = path
            .segments
            .iter()
            .map(|it| it.ident.to_string())
            .collect();
        let leads_out = |first: &str| {
            ["crate", "super", "self"].contains(&first) || first.starts_with("frugality_")
        };
        if parts.len() > 1 && leads_out(&parts[0]) {
            self.paths.insert(parts);
        }
        visit::visit_path(self, path);
    }
}

/// Names of the structs, enums and traits that other modules may use, without those of tests.
fn public_types(items: &[Item]) -> Vec<String> {
    let mut names = Vec::new();
    for item in items {
        let (visibility, name) = match item {
            Item::Struct(of) => (&of.vis, &of.ident),
            Item::Enum(of) => (&of.vis, &of.ident),
            Item::Trait(of) => (&of.vis, &of.ident),
            Item::Mod(module) if !is_test(&module.attrs) => {
                let inner = module.content.iter();
                names.extend(inner.flat_map(|(_, items)| public_types(items)));
                continue;
            }
            _ => continue,
        };
        if !matches!(visibility, Visibility::Inherited) {
            names.push(name.to_string());
        }
    }
    names
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|path| path.is_ident("test"))
    })
}

/// The modules that are left when modules without uses among the rest are taken away; the shortest circle is in them.
fn circle(imports: &Imports) -> Imports {
    let mut rest = imports.clone();
    loop {
        let names: BTreeSet<Module> = rest.keys().cloned().collect();
        let before = names.len();
        rest.retain(|_, used| {
            used.retain(|other| names.contains(other));
            !used.is_empty()
        });
        let left: BTreeSet<Module> = rest.keys().cloned().collect();
        // And without those that nothing of the rest uses.
        let used: BTreeSet<Module> = rest.values().flatten().cloned().collect();
        rest.retain(|module, _| used.contains(module));
        if rest.len() == before {
            return rest;
        }
        if left.is_empty() {
            return Imports::new();
        }
    }
}
