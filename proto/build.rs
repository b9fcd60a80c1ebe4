//! Compiles the protos with protox: no protoc on the machine is needed.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = [
        "drover/v1/node.proto",
        "drover/v1/agent.proto",
        "drover/v1/admin.proto",
        "drover/sim/v1/cloud.proto",
    ];
    for file in files {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(files, ["."])?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
